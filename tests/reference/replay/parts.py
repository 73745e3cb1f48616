"""A machine's parts, put together for a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.reference.replay.blocks import Sm
from tests.reference.replay.dram import Dram
from tests.reference.replay.hashes import Places
from tests.reference.replay.histograms import Times
from tests.reference.replay.l1 import L1
from tests.reference.replay.l2 import L2
from tests.reference.replay.link import Link
from tests.reference.replay.numbers import Numbers
from tests.reference.replay.ports import Clock
from tests.reference.replay.schedulers import Scheduler
from tests.reference.replay.schemes import Below
from tests.reference.replay.sizes import Sizes
from tests.reference.replay.space import Placed
from tests.reference.replay.um import Pages, page_room


@dataclass
class Parts:
    """Everything that a run's requests pass.

    Parameters
    ----------
    numbers : of the machine
    scheme : name of the replay scheme
    n_entries : of the address space
    sizes : of entries
    on_device : allocations that the program doesn't have in host memory
    most_entries : of these, the most entries at any moment
    """

    numbers: Numbers
    scheme: str
    n_entries: int
    sizes: Sizes
    on_device: list[Placed]
    most_entries: int
    clock: Clock = field(default_factory=Clock)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        machine, numbers, counts, clock = self.numbers.machine, self.numbers, self.counts, self.clock
        self.times = Times()
        waits = self.times.waits
        places = Places(numbers, self.n_entries)
        self.dram, self.link = Dram(numbers, clock, counts, waits), Link(numbers, clock, counts, waits)
        self.below = Below(numbers, places, self.scheme, clock, self.dram, self.link, self.sizes, counts, waits)
        self.l2 = L2(numbers, places, clock, self.below, counts, self.times)
        sms = range(machine.sm.count)
        self.l1s = [L1(sm, numbers, places, self.l2, counts, self.times) for sm in sms]
        self.schedulers = [[Scheduler(numbers, counts) for _ in range(machine.sm.schedulers)] for _ in sms]
        if self.scheme == "unified-memory":
            room = page_room(numbers, self.most_entries)
            self.below.pages = Pages(numbers, self.link, counts, self.on_device, room, self._leave_caches)
        self.sms = [Sm(numbers, sm, own) for sm, own in enumerate(self.schedulers)]

    def _leave_caches(self, entries: range) -> None:
        """Lines leave with their page; the L2 keeps those of host memory."""
        for entry, _ in self.l2.cache.all_lines():
            if entry in entries and not self.below.on_host(entry):
                self.l2.evict(entry)
        for l1 in self.l1s:
            for entry, _ in l1.cache.all_lines():
                if entry in entries:
                    l1.cache.drop(entry)
