"""Addresses of an iteration's storages in the caching allocator's pool, when it no longer grows.

Persistent storages are allocated first: weights and buffers before the first iteration, the optimizer's state in its
first step. Each iteration allocates its inputs, then its operators' results, and frees as PyTorch does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from buddysim.capture.torch.caching_allocator import CachingAllocator, Segment
from buddysim.formats.operator_graph import OperatorGraph

_ITERATIONS: Final = 3  # iterations until the pool stops growing
_AT_ONCE: Final = ("weight", "buffer")


@dataclass(frozen=True)
class TensorLayout:
    """Addresses of storages.

    Attributes
    ----------
    addresses : of each storage of the graph, None for empty ones
    segments : of each storage: the number of its segment
    pool : the segments
    """

    addresses: tuple[int | None, ...]
    segments: tuple[int | None, ...]
    pool: tuple[Segment, ...]

    def address(self, storage: int) -> int:
        """Return the address of a storage; 0 for an empty one."""
        return self.addresses[storage] or 0


def lay_out(graph: OperatorGraph) -> TensorLayout:
    """Return the addresses of an iteration's storages."""
    allocator = CachingAllocator()
    addresses: list[int | None] = [None] * len(graph.storages)
    segments: list[int | None] = [None] * len(graph.storages)
    allocated: list[list[int]] = [[] for _ in graph.operators]
    freed: list[list[int]] = [[] for _ in graph.operators]
    inputs, state, transient = [], [], []
    for number, storage in enumerate(graph.storages):
        if not storage.bytes:
            continue
        if storage.alloc_operator is not None:
            allocated[storage.alloc_operator].append(number)
            freed[storage.free_operator if storage.free_operator is not None else -1].append(number)
            transient.append(number)
        elif storage.role in _AT_ONCE:
            addresses[number] = allocator.allocate(storage.bytes)
        elif storage.role == "optimizer":
            state.append(number)
        else:
            inputs.append(number)
    first_update = next((at for at, each in enumerate(graph.operators) if each.phase == "optimizer"), 0)
    for iteration in range(_ITERATIONS):
        for number in inputs:
            addresses[number] = allocator.allocate(graph.storages[number].bytes)
        for operator in range(len(graph.operators)):
            if iteration == 0 and operator == first_update:
                for number in state:
                    addresses[number] = allocator.allocate(graph.storages[number].bytes)
            for number in allocated[operator]:
                addresses[number] = allocator.allocate(graph.storages[number].bytes)
            if iteration == _ITERATIONS - 1:
                for number in (*allocated[operator], *(inputs if operator == 0 else ())):
                    segments[number] = allocator.segment_of(addresses[number] or 0)
            for number in freed[operator]:
                allocator.release(addresses[number] or 0)
        for number in inputs:
            allocator.release(addresses[number] or 0)
    for number in range(len(graph.storages)):
        if addresses[number] is not None and segments[number] is None:
            segments[number] = allocator.segment_of(addresses[number] or 0)
    return TensorLayout(tuple(addresses), tuple(segments), tuple(allocator.segments))
