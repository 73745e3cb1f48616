"""Allocators: assign addresses in GPU memory to the tensors of an iteration, one file each."""

from __future__ import annotations

from typing import Protocol

from buddysim.base.memory_pool import FitPolicy
from buddysim.training.iteration.allocators.pool_allocator import LiveSetCounter, PoolAllocator
from buddysim.training.iteration.allocators.static_groups import StaticGroups
from buddysim.training.iteration.memory_usage import TensorAddresses, TensorFilter, WorkspaceRelief, is_any_tensor
from buddysim.training.iteration.program import Program

__all__ = ["POOL", "Allocator", "LiveSetCounter", "PoolAllocator", "StaticGroups"]


class Allocator(Protocol):
    """Assigns addresses to the tensors of an iteration."""

    def allocate(
        self,
        program: Program,
        capacity: int | None,
        pool_policy: FitPolicy = "best-fit",
        relief: WorkspaceRelief | None = None,
    ) -> TensorAddresses:
        """Addresses of every tensor, or the first request that memory cannot serve.

        Parameters
        ----------
        capacity : bytes of GPU memory; None for as much as it takes
        pool_policy : how a pool picks a free block
        relief : gives, for each attempt, what finds smaller workspaces where the pool runs out of memory
        """

    def min_bytes(self, program: Program, counted: TensorFilter = is_any_tensor) -> int:
        """GPU memory without which the iteration cannot be allocated.

        Parameters
        ----------
        counted : leaves out the tensors for which it returns False
        """


#: Step by step, from a pool as large as the GPU's memory.
POOL: Allocator = PoolAllocator()
