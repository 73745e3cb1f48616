"""What a training process takes of a GPU's memory, and what PyTorch's allocator has of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from buddysim.training.caching_allocator import AllocatorSettings
from buddysim.training.iteration.allocators import LiveSetCounter
from buddysim.training.iteration.memory_usage import TensorFilter, is_any_tensor
from buddysim.training.networks.recorded.network import RecordedNetwork

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.iteration.program import Program
    from buddysim.training.networks.graph import Network

_SEVERAL_GPUS = ("ddp", "fsdp", "zero1", "zero2", "zero3")


@dataclass(frozen=True)
class ProcessMemory:
    """The memory of a process with PyTorch's allocator.

    Attributes
    ----------
    settings : of the allocator
    workspace_bytes : of cuBLAS, for each thread: that of the forward and that of the backward pass
    outside_bytes : that the process takes outside of the allocator
    """

    settings: AllocatorSettings
    workspace_bytes: int = 0
    outside_bytes: int = 0

    def offered(self, capacity: int | None) -> int | None:
        """Return the bytes that the allocator has of a GPU's; None for as much as it takes."""
        return None if capacity is None else max(0, capacity - self.outside_bytes)

    def min_bytes(self, program: Program, counted: TensorFilter = is_any_tensor) -> int:
        """What lives at once and lies outside of the allocator: it needs no less."""
        return LiveSetCounter().min_bytes(program, counted) + self.outside_bytes


def outside_bytes(network: Network, machine: TrainingMachine) -> int:
    """Return the bytes of a GPU outside of the allocator: CUDA context, NCCL; 0 where tensors alone are counted."""
    if not isinstance(network, RecordedNetwork):
        return 0
    gpus = max(int(str(network.options.get(name) or 1)) for name in _SEVERAL_GPUS)
    return machine.bytes_outside_allocator(gpus)


def compressed_capacity(memory_bytes: int, ratio: float, outside: int) -> int:
    """Return the bytes that a memory holds whose tensors are compressed; `outside` of them are not."""
    compressed = max(0, memory_bytes - outside)
    return memory_bytes - compressed + int(compressed * ratio)
