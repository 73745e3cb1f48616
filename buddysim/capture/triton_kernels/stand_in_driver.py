"""A driver for a computer without a GPU: scripts ask it for their device, which is the CPU."""

from __future__ import annotations

from typing import Any


class StandInDriver:
    """Answers what scripts and `torch.compile` ask the driver; it launches nothing."""

    def get_current_target(self) -> Any:
        """Return the GPU to compile for."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self) -> Any:
        """Return the device of the script's tensors."""
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        """Return PyTorch's module of the device."""
        import torch

        return torch.cpu

    def get_current_device(self) -> int:
        """Return the number of the device."""
        return 0

    def get_current_stream(self, device: int | None = None) -> int:
        """Return the number of the stream."""
        return 0
