"""Unified Memory: pages that migrate on faults."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from buddysim.replay.twins.machine.link import Link
from buddysim.replay.twins.machine.numbers import LINE_BYTES, Numbers
from buddysim.replay.twins.machine.space import Placed


def page_room(numbers: Numbers, allocated: int) -> int:
    """Pages that device memory holds, where `allocated` entries are the most at any moment."""
    machine: Any = numbers.machine
    entries = allocated * (1 - Fraction(str(machine.um.oversubscription)))
    pages = int(entries) // int(machine.um.page // LINE_BYTES)
    return max(1, pages)


class Pages:
    """The managed pages of a run.

    Parameters
    ----------
    numbers : of the machine
    link : what pages cross
    counts : what is counted
    allocations : those not in host memory
    room : pages that device memory holds
    leave_caches : called with the entries of a page that is evicted

    Attributes
    ----------
    resident : when each resident page can be used (ps), the least recently used one first
    """

    def __init__(
        self,
        numbers: Numbers,
        link: Link,
        counts: Counter[str],
        allocations: list[Placed],
        room: int,
        leave_caches: Callable[[range], None],
    ) -> None:
        machine: Any = numbers.machine  # with the scheme's section
        self.keys, self.link, self.counts, self.room, self.leave_caches = machine.um, link, counts, room, leave_caches
        self.fault_latency = machine.ps(machine.um.fault_latency)
        self.page_entries = machine.um.page // LINE_BYTES
        self.managed = {
            page
            for placed in allocations
            for page in range(placed.first // self.page_entries, (placed.end - 1) // self.page_entries + 1)
        }
        self.resident = OrderedDict((page, 0) for page in sorted(self.managed)[:room])
        self.batch_start, self.batch_end, self.batch_faults = -1, 0, 0
        counts["um.resident_bytes"] = room * machine.um.page

    def is_resident(self, entry: int) -> bool:
        """Whether an entry's page is in device memory, or on its way."""
        return entry // self.page_entries in self.resident

    def access(self, entry: int, t: int) -> int:
        """When an access to an entry of a managed page can go on (ps)."""
        page = entry // self.page_entries
        if page in self.resident:
            self.resident.move_to_end(page)
        else:
            self._fault(page, t)
        return max(t, self.resident[page])

    def _fault(self, page: int, t: int) -> None:
        if t > self.batch_start or self.batch_faults == self.keys.fault_batch:
            self.batch_start = max(t, self.batch_end)
            self.batch_end = self.batch_start + self.fault_latency
            self.batch_faults = 0
            self.counts["um.fault_batches_busy_ps"] += self.fault_latency
        self.batch_faults += 1
        self.counts["um.page_faults"] += 1
        brought = self._brought_with(page)
        self.counts["um.pages_prefetched"] += len(brought) - 1
        for one in brought:
            self._bring(one)

    def _brought_with(self, page: int) -> list[int]:
        """The faulting page, and those that the tree prefetches with it."""
        brought, size = [page], 2
        while size <= self.keys.prefetch // self.keys.page:
            group = range(page // size * size, page // size * size + size)
            if 2 * (1 + sum(other in self.resident for other in group)) > size:
                absent = [other for other in group if other in self.managed and other not in self.resident]
                brought = [page, *(other for other in absent if other != page)]
            size *= 2
        return brought[: self.room]

    def _bring(self, page: int) -> None:
        if len(self.resident) == self.room:
            evicted, _ = self.resident.popitem(last=False)
            self.counts["um.pages_evicted"] += 1
            self.counts["link.migration_out_bytes"] += self.keys.page
            self.link.write(self.keys.page, self.batch_end)
            self.leave_caches(range(evicted * self.page_entries, (evicted + 1) * self.page_entries))
        self.counts["link.migration_in_bytes"] += self.keys.page
        self.resident[page] = self.link.read(self.keys.page, self.batch_end)
