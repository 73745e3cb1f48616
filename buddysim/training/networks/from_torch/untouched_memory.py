"""Tensors of the CPU whose memory nobody writes, and that report their end.

Pages of new memory cost nothing until they are written, so a tensor of any size can be had. PyTorch must not notice
that it is watched: a storage's wrapper in Python, or a weak reference to one, counts as a user of the storage, and
autograd then adds gradients out of place. So each tensor lies in a buffer of Python's, whose end is noticed instead,
and is recognised by its address.
"""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

#: From here on memory is mapped without a reservation: more than the machine has is possible.
_MAPPED = 1 << 26
_NORESERVE = 0x4000


class MemoryBlock:
    """Memory of one storage.

    Attributes
    ----------
    known : whether its values are those that PyTorch would compute
    label : whatever the owner of the memory puts on it when it is allocated
    """

    __slots__ = ("known", "label", "reference")

    def __init__(self, label: Any, known: bool, reference: Any) -> None:
        self.label, self.known, self.reference = label, known, reference


class UntouchedMemory:
    """Allocates tensors and finds their blocks again.

    Attributes
    ----------
    on_allocation : called with the bytes of a new block; its result is the block's label, which is dropped at the end
    """

    def __init__(self) -> None:
        self.on_allocation: Callable[[int], Any] = lambda _: None
        self._blocks: dict[int, MemoryBlock] = {}

    def allocate(
        self, shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype, known: bool = False, size: int = 0
    ) -> torch.Tensor:
        """Return a tensor on memory of its own: as much as it needs, at least `size` bytes."""
        if 0 in shape:
            return torch.empty_strided(shape, strides, dtype=dtype)
        elements = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
        size = max(size, elements * dtype.itemsize)
        buffer: Any = _mapped(size) if size >= _MAPPED else np.empty(size, np.uint8)
        tensor = torch.frombuffer(buffer, dtype=torch.uint8).view(dtype).as_strided(shape, strides)
        address = tensor.data_ptr()
        reference = weakref.ref(buffer, lambda _: self._blocks.pop(address))
        self._blocks[address] = MemoryBlock(self.on_allocation(size), known, reference)
        return tensor

    def copied(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the values of another one."""
        made = self.allocate(tensor.shape, tensor.stride(), tensor.dtype, known=True)
        return made.copy_(tensor) if tensor.numel() else made

    def find(self, tensor: torch.Tensor) -> MemoryBlock | None:
        """Return the block of a tensor; None if it has another's memory, or none."""
        return self._blocks.get(tensor.data_ptr() - tensor.storage_offset() * tensor.element_size())


def _mapped(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
