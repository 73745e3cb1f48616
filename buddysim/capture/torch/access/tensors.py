"""Tensors as address ranges with shape and strides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from buddysim.capture.torch.access.launch import Addresses

_BYTES: Final = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2}


@dataclass(frozen=True)
class TensorView:
    """A tensor in memory.

    Attributes
    ----------
    address : of the first element
    shape, strides : in elements
    dtype : as PyTorch names it
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str = "float32"

    @property
    def element_bytes(self) -> int:
        return _BYTES.get(self.dtype, 1)

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def contiguous(self) -> bool:
        """Whether its elements lie one after the other, in the order of their indices."""
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True

    @cached_property
    def dense(self) -> bool:
        """Whether its elements fill a range of memory, in any order."""
        sizes = sorted((stride, size) for size, stride in zip(self.shape, self.strides, strict=True) if size != 1)
        expected = 1
        for stride, size in sizes:
            if stride != expected:
                return False
            expected *= size
        return True

    def element_address(self, *index: Addresses | int) -> Addresses:
        """Return the addresses of elements."""
        offset = sum((np.asarray(i, np.int64) * stride for i, stride in zip(index, self.strides, strict=True)), 0)
        return np.asarray(self.address + offset * self.element_bytes, np.int64)

    def flat_address(self, number: Addresses) -> Addresses:
        """Return the addresses of elements by number, with the last index fastest."""
        if self.contiguous:
            return np.asarray(self.address + number * self.element_bytes, np.int64)
        index = []
        for size in reversed(self.shape):
            number, here = np.divmod(number, size)
            index.append(here)
        return self.element_address(*reversed(index))

    def broadcast_to(self, shape: tuple[int, ...]) -> TensorView:
        """Return the tensor broadcast to a shape."""
        added = len(shape) - len(self.shape)
        strides = [0] * added
        for size, stride, target_size in zip(self.shape, self.strides, shape[added:], strict=True):
            strides.append(stride if size == target_size else 0)
        return TensorView(self.address, shape, tuple(strides), self.dtype)

    def is_aligned(self, bytes: int) -> bool:
        return self.address % bytes == 0
