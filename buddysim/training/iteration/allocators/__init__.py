"""Placers: what gives the tensors of an iteration their addresses in GPU memory, one file each."""

from __future__ import annotations

from typing import Protocol

from buddysim.base.memory_pool import FitPolicy
from buddysim.training.iteration.allocators.pool_allocator import LiveSetCounter, PoolAllocator
from buddysim.training.iteration.allocators.static_groups import StaticGroups
from buddysim.training.iteration.memory_usage import TensorAddresses, TensorFilter, WorkspaceFallback, is_any_tensor
from buddysim.training.iteration.program import Program

__all__ = ["POOL", "Allocator", "LiveSetCounter", "PoolAllocator", "StaticGroups"]


class Allocator(Protocol):
    """A way to lay out the tensors of an iteration."""

    def allocate(
        self,
        program: Program,
        capacity: int | None,
        pool_policy: FitPolicy = "best-fit",
        relief: WorkspaceFallback | None = None,
    ) -> TensorAddresses:
        """Addresses for every tensor, or the first request that could not be served.

        Parameters
        ----------
        capacity : bytes of GPU memory; None for as much as it takes
        pool_policy : how a pool picks a free block
        relief : of a pool that runs over
        """

    def min_bytes(self, program: Program, counted: TensorFilter = is_any_tensor) -> int:
        """GPU memory without which the iteration can't be placed.

        Parameters
        ----------
        counted : leaves out the tensors for which it says False
        """


#: Step by step, from a pool as large as the GPU's memory.
POOL: Allocator = PoolAllocator()
