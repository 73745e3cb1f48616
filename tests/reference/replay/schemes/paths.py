"""Replay schemes below the L2: fills and write-backs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from buddysim.buddy import Target
from tests.reference.replay.dram.dram import RefDram
from tests.reference.replay.link.link import RefLink
from tests.reference.replay.memory.address_map import RefAddressMap, RefLocation
from tests.reference.replay.memory.histograms import RefQueueWaits
from tests.reference.replay.numbers import FINE, SECTOR_BYTES, RefNumbers
from tests.reference.replay.primitives.caches import RefCacheLine
from tests.reference.replay.primitives.ports import RefClock, RefPort
from tests.reference.replay.schemes.buddy.metadata_cache import RefMetadataCache, RefMetadataLookup
from tests.reference.replay.schemes.unified_memory import RefUmState
from tests.reference.replay.sizes import RefSizes
from tests.reference.replay.sm.warps import RefWarp
from tests.reference.replay.space import RefAllocationRange

SECTORS_NEEDED = (0, 1, 1, 1, 2, 3, 3, 4)
LARGEST = 7


class RefPlacement(Enum):
    """The memories in which an allocation's entries lie."""

    RAW = 0
    COMPRESSED = 1
    HOST = 2


@dataclass
class RefRegion:
    """An allocation during a run.

    Parameters
    ----------
    allocation_range : the allocation and its entries
    placement : where it lies
    device_sectors : sectors of an entry that device memory keeps, where it is compressed
    """

    allocation_range: RefAllocationRange
    placement: RefPlacement
    device_sectors: int
    counts: Counter[str] = field(default_factory=Counter)


def region_of(allocation_range: RefAllocationRange, scheme: str, target: Target, bypass_1x: bool) -> RefRegion:
    """Return an allocation with its placement under a scheme."""
    if scheme == "pinned-host" or allocation_range.allocation.space == "host":
        return RefRegion(allocation_range, RefPlacement.HOST, 4)
    if scheme == "bandwidth-compression":
        return RefRegion(allocation_range, RefPlacement.COMPRESSED, 4)
    if scheme == "buddy" and not (bypass_1x and target.name == "1x"):
        return RefRegion(allocation_range, RefPlacement.COMPRESSED, target.device_sectors)
    return RefRegion(allocation_range, RefPlacement.RAW, 4)


@dataclass
class RefMemoryPath:
    """The memory path below the L2.

    Parameters
    ----------
    numbers, address_map : of the machine
    scheme : name of the replay scheme
    clock : the run's
    dram, link, sizes : what it uses
    counts, waits : what is counted
    """

    numbers: RefNumbers
    address_map: RefAddressMap
    scheme: str
    clock: RefClock
    dram: RefDram
    link: RefLink
    sizes: RefSizes
    counts: Counter[str]
    waits: RefQueueWaits
    regions: list[RefRegion] = field(default_factory=list)
    live: list[RefRegion] = field(default_factory=list)

    def __post_init__(self) -> None:
        machine = self.numbers.machine
        self.machine, self.eight_byte_class = machine, machine.buddy.eight_byte_class
        self.uses_sizes = self.scheme in ("bandwidth-compression", "buddy")
        self.compressors = [RefPort(self.waits.compressor) for _ in range(machine.l2.slices)]
        self.compression_latency = machine.ps(machine.compression.latency)
        self.compression_cost = FINE * machine.ps(machine.compression.initiation_interval)
        self.pages: RefUmState | None = None
        self.metadata: RefMetadataCache | None = None
        if self.scheme == "buddy" and not machine.metadata_cache.perfect:
            self.metadata = RefMetadataCache(self.address_map, self.clock, self.dram, self.counts, self.waits)

    def region(self, entry: int) -> RefRegion:
        """Return the live allocation that an entry belongs to."""
        return next(r for r in self.live if r.allocation_range.first <= entry < r.allocation_range.end)

    def on_host(self, entry: int) -> bool:
        """Return whether an entry always lies in host memory."""
        host = (r for r in self.live if r.placement is RefPlacement.HOST)
        return any(r.allocation_range.first <= entry < r.allocation_range.end for r in host)

    def is_resident(self, entry: int) -> bool:
        """Return whether the L2 can hold an entry."""
        return self.pages is None or self.pages.is_resident(entry)

    def wake(self, sm: int, warp: RefWarp, at_end: bool, t: int) -> int:
        """Return when a warp of an SM that is scheduled at `t` can continue (ps)."""
        return t if self.pages is None else self.pages.wake(sm, warp, at_end, t)

    def written(self, entries: range) -> None:
        """Note that a copy or fill writes entries."""
        if self.pages is not None:
            self.pages.written(entries)

    def arrive(self, entry: int, t: int) -> int:
        """Return when an access that has passed its slice's port at `t` looks for its line (ps)."""
        return t if self.pages is None or self.on_host(entry) else self.pages.access(entry, t)

    def fill(self, entry: int, requested: int, besides: int, t: int) -> tuple[int, int]:
        """Fetches sectors, of raw entries in device memory extra ones: what the L2 then has, and when (ps)."""
        region = self.region(entry)
        region.counts["fills"] += 1
        if region.placement is RefPlacement.COMPRESSED:
            return self._fill_compressed(region, entry, requested, requested | besides, t)
        count = requested.bit_count()
        if region.placement is RefPlacement.HOST:
            self.counts["link.demand_bytes"] += SECTOR_BYTES * count
            return requested, self.link.read(SECTOR_BYTES * count, t)
        location = self.address_map.location(entry)
        self.dram.count("demand", location, count)
        self.dram.count("overfetch", location, besides.bit_count())
        return requested | besides, self.dram.read(location, count + besides.bit_count(), t)

    def write_back(self, entry: int, line: RefCacheLine, t: int) -> int:
        """Write a dirty line back; return when its way is free (ps)."""
        region = self.region(entry)
        self.count_write_back(entry)
        if region.placement is RefPlacement.COMPRESSED:
            return self._write_back_compressed(region, entry, line, t)
        count = line.dirty.bit_count()
        if region.placement is RefPlacement.HOST:
            self.counts["link.writeback_bytes"] += SECTOR_BYTES * count
            return self.link.write(SECTOR_BYTES * count, t)
        location = self.address_map.location(entry)
        self.dram.count("writeback", location, count)
        return self.dram.write(location, count, t)

    def count_write_back(self, entry: int) -> None:
        """Count a write-back of an entry for its allocation."""
        self.region(entry).counts["writebacks"] += 1

    def dirtied(self, entry: int, line: RefCacheLine, launch_index: int) -> None:
        """Note that the kernel of a launch index wrote a line; the class of the last writer counts."""
        if self.uses_sizes:
            line.size_class = self.sizes.written(self.region(entry).allocation_range, entry, launch_index)

    # -- compressed entries -------------------------------------------------------------------------------------------

    def _parts(self, size_class: int, device_sectors: int) -> tuple[int, int]:
        """Return the device and buddy sectors of an entry."""
        needed = SECTORS_NEEDED[size_class]
        if device_sectors:
            return min(needed, device_sectors), max(0, needed - device_sectors)
        if size_class == 0:
            return 0, 0
        return 1, 0 if size_class == 1 and self.eight_byte_class else needed

    def _stored_raw(self, size_class: int, device_sectors: int) -> bool:
        if size_class != LARGEST or self.machine.compression.fetch_whole_raw_entry:
            return False
        return device_sectors == 4 or self.machine.buddy.raw_sectors == "single"

    def _raw_parts(self, sectors: int, device_sectors: int) -> tuple[int, int]:
        """Return the device and buddy sectors in which sectors of a raw entry lie."""
        if device_sectors == 0:
            return sectors & 1, sectors.bit_count()
        device = sum(sectors >> number & 1 for number in range(device_sectors))
        return device, sectors.bit_count() - device

    def _size_state(self, size_class: int) -> int:
        if size_class == 1 and self.eight_byte_class:
            return 1
        return SECTORS_NEEDED[size_class] + 1 if size_class else 0

    def _compressor(self, entry: int, t: int) -> int:
        port = self.compressors[self.address_map.slice_of(entry)]
        return port.request(t, self.compression_cost) + self.compression_latency

    def _fill_compressed(self, region: RefRegion, entry: int, requested: int, fetched: int, t: int) -> tuple[int, int]:
        """Fetches an entry, or the sectors `fetched` of a raw one: what the L2 then has, and when (ps)."""
        size_class, device_sectors, counts = self.sizes.now[entry], region.device_sectors, self.counts
        location = self.address_map.location(entry)
        raw, count = self._stored_raw(size_class, device_sectors), requested.bit_count()
        parts = self._raw_parts(fetched, device_sectors) if raw else self._parts(size_class, device_sectors)
        needed, buddy = parts
        lookup = self.metadata.look_up(entry, t, fill=True) if self.metadata else RefMetadataLookup(t, t, "hits")
        if self.metadata and self.metadata.speculates(lookup.word):
            read, arrived = self._speculate(entry, region, fetched, lookup)
            if raw and device_sectors < 4:
                fetched |= (1 << device_sectors) - 1
        else:
            read = needed
            arrived = self.dram.read(location, needed, lookup.known)
        demand = min(needed, count)
        self.dram.count("demand", location, demand)
        self.dram.count("overfetch", location, read - demand)
        if buddy:
            arrived = max(arrived, self.link.read(SECTOR_BYTES * buddy, lookup.known))
            region.counts["buddy"] += 1
            counts["buddy.fills"] += 1
            demand = min(count - demand, buddy)
            counts["link.demand_bytes"] += SECTOR_BYTES * demand
            counts["link.overfetch_bytes"] += SECTOR_BYTES * (buddy - demand)
        return (fetched, arrived) if raw else (15, self._compressor(entry, arrived))

    def _speculate(self, entry: int, region: RefRegion, fetched: int, lookup: RefMetadataLookup) -> tuple[int, int]:
        """Fetches the device part before its size is known: sectors read, and when those needed are there (ps)."""
        size_class, device_sectors, location = (
            self.sizes.now[entry],
            region.device_sectors,
            self.address_map.location(entry),
        )
        device, _ = self._parts(size_class, device_sectors)
        speculated = fetched.bit_count() if device_sectors == 4 else max(device_sectors, 1)
        if self._stored_raw(size_class, device_sectors):
            useful = needed = speculated if device_sectors else fetched & 1
        else:
            useful = (fetched & (1 << device) - 1).bit_count() if device_sectors == 4 else min(device, speculated)
            needed = device
        arrived = self.dram.read(location, useful, lookup.looked_up)
        not_needed = self._read_what_is_not_needed(location, speculated - useful, lookup)
        self.counts["metadata.speculative_fills"] += 1
        self.counts["metadata.misspeculated_fills"] += speculated > useful
        if needed > useful:
            arrived = max(arrived, self.dram.read(location, needed - useful, lookup.known))
        return needed + not_needed, max(arrived, lookup.known)

    def _read_what_is_not_needed(self, location: RefLocation, count: int, lookup: RefMetadataLookup) -> int:
        """Read misspeculated sectors, unless they are cancelled before they begin; return their number."""
        read = count
        if self.machine.metadata_cache.cancel_misspeculated:
            read = 0
            while read < count and not self.dram.begins_after(location, lookup.looked_up, lookup.known):
                self.dram.read(location, 1, lookup.looked_up)
                read += 1
        else:
            self.dram.read(location, count, lookup.looked_up)
        self.counts["metadata.misspeculated_bytes"] += SECTOR_BYTES * read
        self.counts["metadata.cancelled_bytes"] += SECTOR_BYTES * (count - read)
        return read

    def _write_back_compressed(self, region: RefRegion, entry: int, line: RefCacheLine, t: int) -> int:
        began, device_sectors, location = t, region.device_sectors, self.address_map.location(entry)
        old = self.sizes.now[entry]
        new = old if line.size_class is None else line.size_class
        if self.metadata:
            changed = self._size_state(old) != self._size_state(new)
            t = self.metadata.look_up(entry, t, fill=False, write=changed).known
        old_raw = self._stored_raw(old, device_sectors)
        old_device, old_buddy = self._parts(old, device_sectors)
        device, buddy = self._parts(new, device_sectors)
        if old_raw and new == LARGEST:
            return self._written_back(began, t, self._write_raw(region, entry, line.dirty, t))
        invalid = ~line.valid & 15
        if invalid:
            if old_raw:
                old_device, old_buddy = self._raw_parts(invalid, device_sectors)
            self.dram.count("read_modify_write", location, old_device)
            arrived = self.dram.read(location, old_device, t)
            if old_buddy:
                self.counts["link.read_modify_write_bytes"] += SECTOR_BYTES * old_buddy
                arrived = max(arrived, self.link.read(SECTOR_BYTES * old_buddy, t))
            t = arrived if old_raw else self._compressor(entry, arrived)
        t = self._compressor(entry, t)
        taken = self._write_parts(entry, device, buddy, t)
        self._changed(entry, old, new)
        if buddy or (old_buddy and invalid):
            region.counts["buddy"] += 1
            self.counts["buddy.writebacks"] += 1
        return self._written_back(began, t, taken)

    def _written_back(self, began: int, ready: int, taken: int) -> int:
        """Return the end of a write-back; without a buffer, what comes before the writes takes no time (ps)."""
        return taken if self.machine.l2.writeback_buffer else began + taken - ready

    def _write_raw(self, region: RefRegion, entry: int, dirty: int, t: int) -> int:
        """Write sectors of a raw entry; return when all are taken (ps)."""
        device, buddy = self._raw_parts(dirty, region.device_sectors)
        if buddy:
            region.counts["buddy"] += 1
            self.counts["buddy.writebacks"] += 1
        return self._write_parts(entry, device, buddy, t)

    def _write_parts(self, entry: int, device: int, buddy: int, t: int) -> int:
        """Write device and buddy sectors of an entry; return when all are taken (ps)."""
        taken, location = t, self.address_map.location(entry)
        self.dram.count("writeback", location, device)
        if device:
            taken = self.dram.write(location, device, t)
        if buddy:
            self.counts["link.writeback_bytes"] += SECTOR_BYTES * buddy
            taken = max(taken, self.link.write(SECTOR_BYTES * buddy, t))
        return taken

    def _changed(self, entry: int, old: int, new: int) -> None:
        before, after = self._size_state(old), self._size_state(new)
        self.counts["sizes.class_changes"] += before != after
        self.counts["sizes.class_increases"] += after > before
        self.counts["sizes.class_decreases"] += after < before
        self.sizes.now[entry] = new
