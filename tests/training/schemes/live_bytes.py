"""Count the bytes of PyTorch's live tensors, storage by storage, as an allocator would."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """Follows every storage that an operation returns until it is freed.

    Parameters
    ----------
    ignored : sizes in bytes that aren't counted: gradients of weights, which the model holds from the start
    """

    def __init__(self, ignored: set[int]) -> None:
        super().__init__()
        self.ignored = ignored
        self.bytes = self.peak = 0
        self._known: dict[int, weakref.ref[Any]] = {}

    def leave_out(self, tensor: torch.Tensor) -> None:
        """Remove a tensor from the count."""
        storage = tensor.untyped_storage()
        self._known[storage._cdata] = weakref.ref(storage)
        self.bytes -= storage.nbytes()

    def add(self, tensor: torch.Tensor) -> None:
        """Count a tensor's storage once."""
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._known or size in self.ignored or tensor.device.type != "cpu":
            return

        def freed(_: object) -> None:
            del self._known[key]
            self.bytes -= size

        self._known[key] = weakref.ref(storage, freed)
        self.bytes += size
        self.peak = max(self.peak, self.bytes)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.add(leaf)
        return result
