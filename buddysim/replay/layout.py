"""Where the allocations of a trace lie in the entry numbers of a run (docs/architecture.md, Address space of a run)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.trace import Allocation, Trace

LINES_PER_PAGE = 2 * 1024**2 // 128
MOST_ENTRIES = 2**32 - 2


@dataclass(frozen=True)
class Placed:
    """Where an allocation lies in the run's entry numbers.

    Attributes
    ----------
    allocation : the trace's allocation
    region : its position among the regions, which are in the order of their entries
    first_entry, end_entry : its entries in the run
    """

    allocation: Allocation
    region: int
    first_entry: int
    end_entry: int


class Layout:
    """Entry numbers of every allocation.

    Attributes
    ----------
    placed : list of Placed, in the order of the regions
    n_entries : entries of the run's address space, a multiple of 64
    """

    def __init__(self, trace: Trace) -> None:
        allocations = [a for a in trace.allocations if a.bytes]
        allocations.sort(key=lambda a: (a.base, a.born, a.index))
        self.placed: list[Placed] = []
        cursor = 0
        before_base = before_end = before_first = -1
        for region, allocation in enumerate(allocations):
            line, entries = allocation.base >> 7, allocation.entries
            if before_end >= 0 and line >= before_end and line // LINES_PER_PAGE == (before_end - 1) // LINES_PER_PAGE:
                first = before_first + line - before_base
            else:
                first = -(-cursor // LINES_PER_PAGE) * LINES_PER_PAGE + line % LINES_PER_PAGE
            self.placed.append(Placed(allocation, region, first, first + entries))
            cursor = first + entries
            before_base, before_end, before_first = line, line + entries, first
        self.n_entries = max(64, -(-cursor // 64) * 64)
        if self.n_entries > MOST_ENTRIES:
            raise BuddysimError(
                f"{trace.path}: allocations of {cursor * 128 / 2**30:.0f} GiB: expected at most "
                f"{MOST_ENTRIES * 128 / 2**30:.0f} GiB"
            )
        self.of_allocation = {p.allocation.index: p for p in self.placed}

    def region_of_page(self) -> NDArray[np.uint32]:
        """For each 64 entries the first region that reaches into them or lies behind them."""
        ends = np.array([p.end_entry for p in self.placed] or [0], dtype=np.int64)
        pages = np.arange(self.n_entries // 64, dtype=np.int64) * 64
        return np.minimum(np.searchsorted(ends, pages, side="right"), len(ends) - 1).astype(np.uint32)

    def live_table(self, event: int) -> NDArray[np.int64]:
        """The allocations that are live at a position among the trace's events.

        Returns
        -------
        int64 array (n, 3), sorted: first line (address / 128), end line, entry of the first line
        """
        rows = [
            (p.allocation.base >> 7, (p.allocation.base >> 7) + p.end_entry - p.first_entry, p.first_entry)
            for p in self.placed
            if p.allocation.born <= event and (p.allocation.died is None or event < p.allocation.died)
        ]
        return np.array(sorted(rows), dtype=np.int64).reshape(-1, 3)

    def entries_of(self, table: NDArray[np.int64], address: int, size: int) -> tuple[int, int] | None:
        """Entries of a range of addresses inside one live allocation, or None where it is in none."""
        if not size or not len(table):
            return None
        line = address >> 7
        row = int(np.searchsorted(table[:, 0], line, side="right")) - 1
        if row < 0 or line >= table[row, 1]:
            return None
        first = int(table[row, 2] + line - table[row, 0])
        last_line = min((address + size - 1) >> 7, int(table[row, 1]) - 1)
        return first, first + last_line - line + 1
