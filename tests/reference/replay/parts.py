"""The components of a machine, connected for a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.reference.replay.dram.dram import RefDram
from tests.reference.replay.l1.l1 import RefL1
from tests.reference.replay.l2.l2 import RefL2
from tests.reference.replay.link.link import RefLink
from tests.reference.replay.memory.address_map import RefAddressMap
from tests.reference.replay.memory.histograms import RefLatencyHistograms
from tests.reference.replay.numbers import RefNumbers
from tests.reference.replay.primitives.ports import RefClock
from tests.reference.replay.schemes.paths import RefMemoryPath
from tests.reference.replay.schemes.unified_memory import RefUmState, page_capacity
from tests.reference.replay.sizes import RefSizes
from tests.reference.replay.sm.schedulers import RefScheduler
from tests.reference.replay.sm.thread_blocks import RefSm
from tests.reference.replay.space import RefAllocationRange


@dataclass
class RefComponents:
    """All components that a run's requests pass.

    Parameters
    ----------
    numbers : of the machine
    scheme : name of the replay scheme
    n_entries : of the address space
    sizes : of entries
    on_device : allocations that the program doesn't have in host memory
        peak_entries : the most entries of these allocations at any instant
    """

    numbers: RefNumbers
    scheme: str
    n_entries: int
    sizes: RefSizes
    on_device: list[RefAllocationRange]
    peak_entries: int
    clock: RefClock = field(default_factory=RefClock)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        machine, numbers, counts, clock = self.numbers.machine, self.numbers, self.counts, self.clock
        self.times = RefLatencyHistograms()
        waits = self.times.waits
        address_map = RefAddressMap(numbers, self.n_entries)
        self.dram, self.link = RefDram(numbers, clock, counts, waits), RefLink(numbers, clock, counts, waits)
        self.below = RefMemoryPath(
            numbers, address_map, self.scheme, clock, self.dram, self.link, self.sizes, counts, waits
        )
        self.l2 = RefL2(numbers, address_map, clock, self.below, counts, self.times)
        if self.below.metadata:
            self.below.metadata.between_slices = self.l2.between_slices
        sms = range(machine.sm.count)
        self.l1s = [RefL1(sm, numbers, address_map, self.l2, counts, self.times) for sm in sms]
        self.schedulers = [[RefScheduler(numbers, counts) for _ in range(machine.sm.schedulers)] for _ in sms]
        if self.scheme == "unified-memory":
            capacity = page_capacity(numbers, self.peak_entries)
            self.below.pages = RefUmState(numbers, self.link, counts, self.on_device, capacity, self._leave_caches)
        self.sms = [RefSm(numbers, sm, own) for sm, own in enumerate(self.schedulers)]

    def _leave_caches(self, entries: range) -> None:
        """Drop the lines of an evicted page; the L2 keeps lines of host memory."""
        for entry, _ in self.l2.cache.all_lines():
            if entry in entries and not self.below.on_host(entry):
                self.l2.evict(entry)
        for l1 in self.l1s:
            for entry, _ in l1.cache.all_lines():
                if entry in entries:
                    l1.cache.drop(entry)
