"""The readable twin of Unified Memory: which accesses fault, which pages are prefetched and evicted."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable


class NaivePages:
    """Pages that migrate on fault, one block of a prefetch tree after the other.

    Parameters
    ----------
    managed : pages that hold allocations of device memory; those of lowest number are resident at first
    capacity : pages that fit device memory
    pages_per_block : pages under one prefetch tree, a power of two

    Attributes
    ----------
    faults, prefetched, evicted : int, so far
    """

    def __init__(self, managed: Iterable[int], capacity: int, pages_per_block: int) -> None:
        self.managed = sorted(set(managed))
        self.capacity, self.pages_per_block = capacity, pages_per_block
        self.resident = OrderedDict.fromkeys(self.managed[:capacity])
        self.faults = self.prefetched = self.evicted = 0

    def access(self, page: int) -> None:
        """An L2 miss or write-back of a page."""
        if page in self.resident:
            self.resident.move_to_end(page)
            return
        self.faults += 1
        prefetched = self.tree(page)
        self.migrate_in(page)
        for other in prefetched:
            if other not in self.resident:
                self.migrate_in(other)
                self.prefetched += 1

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

    def migrate_in(self, page: int) -> None:
        """Migrates a page in, evicting the least recently missed one where there is no room."""
        if len(self.resident) == self.capacity:
            self.resident.popitem(last=False)
            self.evicted += 1
        self.resident[page] = None
