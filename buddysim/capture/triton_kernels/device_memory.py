"""Addresses of the program's tensors on a GPU, by a model of its allocator, and those of its accesses."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from buddysim.capture.torch.caching_allocator import CachingAllocator


@dataclass
class DeviceStorage:
    """Memory of a tensor, in this process and on the GPU.

    Attributes
    ----------
    host : address in this process
    base : address on the GPU
    bytes : size
    name : argument that used it first
    reference : weak reference to the storage
    allocation : number in the trace; None: not written yet
    """

    host: int
    base: int
    bytes: int
    name: str
    reference: Any
    allocation: int | None = None

    def contents(self) -> npt.NDArray[np.uint8]:
        """Return a copy of its bytes."""
        return np.ctypeslib.as_array((ctypes.c_ubyte * self.bytes).from_address(self.host)).copy()


class DevicePointer:
    """A tensor's pointer as the GPU has it, for the specialisation of a kernel."""

    def __init__(self, dtype: Any, address: int) -> None:
        self.dtype = dtype
        self._address = address

    def data_ptr(self) -> int:
        """Return its address on the GPU."""
        return self._address


def _base(stored: DeviceStorage) -> int:
    return stored.base


class TensorMemory:
    """Storages that launches used; each lives until PyTorch frees it."""

    def __init__(self) -> None:
        self._allocator = CachingAllocator()
        self._hosts: list[int] = []
        self._storages: list[DeviceStorage] = []

    def __iter__(self) -> Iterator[DeviceStorage]:
        """Yield the storages by their address on the GPU: that in this process differs from run to run."""
        return iter(sorted(self._storages, key=_base))

    def add(self, tensor: Any, name: str) -> tuple[DeviceStorage, bool]:
        """Return the storage of a tensor, and whether it is new."""
        from torch.multiprocessing.reductions import StorageWeakRef

        storage = tensor.untyped_storage()
        host = storage.data_ptr()
        at = bisect_right(self._hosts, host) - 1
        if at >= 0 and self._hosts[at] == host and self._storages[at].bytes == storage.nbytes():
            return self._storages[at], False
        size = storage.nbytes()
        stored = DeviceStorage(host, self._allocator.allocate(max(1, size)), size, name, StorageWeakRef(storage))
        self._hosts.insert(at + 1, host)
        self._storages.insert(at + 1, stored)
        return stored, True

    def remove_freed(self) -> list[DeviceStorage]:
        """Forget the storages that PyTorch freed, and return them."""
        freed = [stored for stored in self if stored.reference.expired()]
        if freed:
            self._storages = [stored for stored in self._storages if not stored.reference.expired()]
            self._hosts = [stored.host for stored in self._storages]
            for stored in freed:
                self._allocator.release(stored.base)
        return freed

    def pointer(self, tensor: Any, stored: DeviceStorage) -> DevicePointer:
        """Return a tensor's pointer on the GPU."""
        return DevicePointer(tensor.dtype, stored.base + tensor.data_ptr() - stored.host)

    def translate(
        self, addresses: npt.NDArray[np.uint64], active: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_] | None]:
        """Return addresses on the GPU, and which of the active ones lie in a storage; None: all.

        Parameters
        ----------
        addresses : of lanes, in this process
        active : lanes that access memory; the addresses of others may be anything
        """
        hosts = np.asarray(self._hosts, np.uint64)
        used = addresses[active]
        if not len(used) or not len(hosts):
            return addresses, active & False if len(used) else None
        low, high = int(used.min()), int(used.max())
        at = bisect_right(self._hosts, low) - 1
        if at >= 0 and high < self._storages[at].host + self._storages[at].bytes:
            stored = self._storages[at]
            return addresses + np.uint64((stored.base - stored.host) % (1 << 64)), None
        owner = np.searchsorted(hosts, addresses, "right").astype(np.int64) - 1
        known = np.maximum(owner, 0)
        ends = np.asarray([stored.host + stored.bytes for stored in self._storages], np.uint64)
        moves = np.asarray([(stored.base - stored.host) % (1 << 64) for stored in self._storages], np.uint64)
        inside = active & (owner >= 0) & (addresses < ends[known])
        return addresses + moves[known], inside
