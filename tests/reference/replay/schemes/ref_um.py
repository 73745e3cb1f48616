"""The reference model of Unified Memory: which accesses fault, which pages are prefetched and evicted."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable


class RefPages:
    """Pages that migrate on fault, one block of a prefetch tree after the other.

    Parameters
    ----------
    managed : pages that hold allocations of device memory; those of lowest number are resident at first
    capacity : pages that fit device memory
    pages_per_block : pages under one prefetch tree, a power of two

    Attributes
    ----------
    resident : OrderedDict whose keys are the resident pages, the least recently used one first
    faults, prefetched, evicted : int, so far
    """

    def __init__(self, managed: Iterable[int], capacity: int, pages_per_block: int) -> None:
        self.managed = sorted(set(managed))
        self.capacity, self.pages_per_block = capacity, pages_per_block
        self.resident = OrderedDict.fromkeys(self.managed[:capacity])
        self.faults = self.prefetched = self.evicted = 0

    def access(self, page: int) -> list[int]:
        """An access that reaches the L2; returns the pages evicted for it, in order."""
        if page in self.resident:
            self.resident.move_to_end(page)
            return []
        self.faults += 1
        brought = [page, *(other for other in self.tree(page) if other not in self.resident and other != page)]
        self.prefetched += len(brought) - 1
        evicted = []
        for new in brought:
            if len(self.resident) == self.capacity:
                evicted.append(self.resident.popitem(last=False)[0])
            self.resident[new] = None
        self.evicted += len(evicted)
        return evicted

    def tree(self, page: int) -> list[int]:
        """The pages of the largest subtree of which more than half is resident with this one."""
        best: list[int] = []
        size = 2
        while size <= self.pages_per_block:
            subtree = range(page // size * size, page // size * size + size)
            if 2 * (1 + sum(other in self.resident for other in subtree)) > size:
                best = [other for other in subtree if other in self.managed]
            size *= 2
        return best
