"""The reference model of the memory system without time: hits, traffic and sizes.

Holds for one warp, whose accesses are in program order: there the engine must agree with it, counter for counter.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field

from buddysim.compress import SECTOR_BYTES, SECTORS_OF_CLASS
from buddysim.replay.primitives.kinds import Placement
from tests.reference.replay.primitives.ref_cache import fold
from tests.reference.replay.schemes.ref_um import RefPages


@dataclass
class RefLineSectors:
    """A cache line's sectors, each state as a set of sector numbers."""

    valid: set[int] = field(default_factory=set)
    dirty: set[int] = field(default_factory=set)


class RefSlicedCache:
    """Caches of equal shape side by side; each set lists the least recently used line first."""

    def __init__(self, units: int, sets: int, ways: int) -> None:
        self.ways = ways
        self.units = [[OrderedDict[int, RefLineSectors]() for _ in range(sets)] for _ in range(units)]

    def access(self, unit: int, local: int, tag: int) -> tuple[RefLineSectors, bool, tuple[int, RefLineSectors] | None]:
        """Return the line of a tag, whether it was present, and the tag and line evicted for it."""
        sets = self.units[unit]
        count = len(sets)
        if count & (count - 1) == 0:
            lines = sets[(local ^ fold(local >> (count.bit_length() - 1))) & (count - 1)]
        else:
            lines = sets[(local % count + fold(local // count) % count) % count]
        victim = None
        if tag in lines:
            lines.move_to_end(tag)
            return lines[tag], True, None
        if len(lines) == self.ways:
            victim = lines.popitem(last=False)
        lines[tag] = RefLineSectors()
        return lines[tag], False, victim

    def drop(self, tags: set[int]) -> list[RefLineSectors]:
        """Remove and return the lines with these tags."""
        every = [lines for unit in self.units for lines in unit]
        return [lines.pop(tag) for lines in every for tag in list(lines) if tag in tags]


class RefMemory:
    """The memory system: L1 of one SM, L2, metadata cache, device memory and link.

    Parameters
    ----------
    numbers : the machine as the engine takes it (`parameters.engine_numbers`)
    regions : (first entry, end entry, placement, device_sectors sectors) of each allocation
    state : size class of each entry now | class after a write-back << 4
    scheme : `ideal`, `bandwidth-compression`, `buddy`, `pinned-host` or `unified-memory`
    pages : of `unified-memory`
    page_entries : entries of each of them

    Attributes
    ----------
    count : Counter by the engine's counter names; traffic as `device.KIND` (sectors) and `link.KIND` (bytes)
    """

    def __init__(
        self,
        numbers: dict[str, int],
        regions: list[tuple[int, int, int, int]],
        state: list[int],
        scheme: str,
        pages: RefPages | None = None,
        page_entries: int = 0,
    ) -> None:
        self.n, self.regions, self.state, self.scheme = numbers, regions, list(state), scheme
        self.pages, self.page_entries = pages, page_entries
        self.l1 = RefSlicedCache(1, numbers["l1_sets"], numbers["l1_ways"])
        self.l2 = RefSlicedCache(numbers["slices"], numbers["l2_sets"], numbers["l2_ways"])
        self.metadata = RefSlicedCache(numbers["metadata_slices"], numbers["metadata_sets"], numbers["metadata_ways"])
        self.count: Counter[str] = Counter()

    # Accesses

    def load(self, entry: int, sectors: set[int], bypass: bool = False) -> None:
        """Load sectors of one line."""
        self.count["load_sectors"] += len(sectors)
        if self.n["l1_enabled"] and not bypass:
            line, _, _ = self.l1.access(0, entry, entry)
            self.count["l1_found"] += len(line.valid & sectors)
            sectors = sectors - line.valid
            line.valid |= sectors
        if sectors:
            self.l2_read(entry, sectors)

    def atomic(self, entry: int, sectors: set[int]) -> None:
        """Process an atomic on sectors of one line: they are read at the L2, then dirty."""
        self.count["load_sectors"] += len(sectors)
        self.l2_read(entry, sectors).dirty |= sectors

    def store(self, entry: int, touched: set[int], whole: set[int]) -> None:
        """Store sectors of one line; partially written sectors cannot be read until they are merged."""
        self.count["store_sectors"] += len(touched)
        line = self.l2_line(entry)
        line.valid |= whole
        line.dirty |= touched

    # L2

    def slice_of(self, entry: int) -> tuple[int, int]:
        """Return the slice of an entry, and its line number there."""
        slices = self.n["slices"]
        group, position = divmod(entry, slices)
        if slices & (slices - 1) == 0:
            return (entry ^ fold(group)) & (slices - 1), group
        return (position + fold(group) % slices) % slices, group

    def l2_line(self, entry: int) -> RefLineSectors:
        if self.pages and self.placement_of(entry)[0] != Placement.HOST:
            for page in self.pages.access(entry // self.page_entries):
                self.evict_page(page)
        unit, local = self.slice_of(entry)
        line, _, victim = self.l2.access(unit, local, entry)
        if victim and victim[1].dirty:
            self.count["writebacks"] += 1
            self.count["writeback_sectors"] += len(victim[1].dirty)
            self.write_back(*victim)
        return line

    def evict_page(self, page: int) -> None:
        """Evict a page of Unified Memory with its lines; their dirty sectors are written back with it."""
        page_entries = range(page * self.page_entries, (page + 1) * self.page_entries)
        managed = [(first, end) for first, end, placement, _ in self.regions if placement != Placement.HOST]
        entries = {entry for entry in page_entries if any(first <= entry < end for first, end in managed)}
        self.l1.drop(set(page_entries))
        for line in self.l2.drop(entries):
            self.count["writebacks"] += bool(line.dirty)
            self.count["writeback_sectors"] += len(line.dirty)

    def l2_read(self, entry: int, sectors: set[int]) -> RefLineSectors:
        line = self.l2_line(entry)
        self.count["l2_found"] += len(line.valid & sectors)
        missing = sectors - line.valid
        if missing:
            self.count["l2_read_misses"] += len(missing)
            self.count["fills"] += 1
            filled = self.fill(entry, missing) - line.valid
            self.count["fill_sectors"] += len(filled)
            line.valid |= filled
        return line

    # Schemes

    def placement_of(self, entry: int) -> tuple[int, int]:
        """Return the memory of an entry under the scheme, and its device sectors."""
        placement, device_sectors = next((p, k) for first, end, p, k in self.regions if first <= entry < end)
        if self.scheme == "pinned-host":
            return Placement.HOST, 4
        if self.scheme == "bandwidth-compression" and placement != Placement.HOST:
            return Placement.COMPRESSED, 4
        if self.scheme in ("ideal", "unified-memory") and placement == Placement.COMPRESSED:
            return Placement.DEVICE, 4
        return placement, device_sectors

    def stored_raw(self, device_sectors: int, size_class: int) -> bool:
        """Return whether the sectors of an entry can be accessed one by one."""
        raw = size_class == 7 and not self.n["fetch_whole_raw_entry"]
        return raw and (device_sectors == 4 or bool(self.n["single_raw_sectors"]))

    def split_raw(self, device_sectors: int, sectors: set[int]) -> tuple[int, int]:
        """Return the device and buddy sectors in which sectors of a raw entry lie."""
        if device_sectors == 0:
            return len(sectors & {0}), len(sectors)
        device = len({s for s in sectors if s < device_sectors})
        return device, len(sectors) - device

    def split(self, device_sectors: int, size_class: int) -> tuple[int, int]:
        """Return the device and buddy sectors of an entry."""
        needed = SECTORS_OF_CLASS[size_class]
        if device_sectors == 0:
            fits = size_class == 0 or (size_class == 1 and bool(self.n["eight_byte_class"]))
            return min(1, needed), 0 if fits else needed
        return min(needed, device_sectors), max(0, needed - device_sectors)

    def fill(self, entry: int, requested: set[int]) -> set[int]:
        """Move the sectors that a miss needs; return the sectors that the L2 then holds."""
        placement, device_sectors = self.placement_of(entry)
        n_requested = len(requested)
        if placement == Placement.HOST:
            self.count["link.demand"] += SECTOR_BYTES * n_requested
            return requested
        if placement == Placement.DEVICE:
            self.count["device.demand"] += n_requested
            return requested
        size_class = self.state[entry] & 7
        raw = self.stored_raw(device_sectors, size_class)
        device, buddy = self.split_raw(device_sectors, requested) if raw else self.split(device_sectors, size_class)
        moved, demand = device, min(n_requested, device)
        if not self.metadata_found(entry, False) and self.n["speculate_on_miss"]:
            if device_sectors == 4:
                speculated = n_requested
                useful = n_requested if raw else len({s for s in requested if s < device})
            else:
                speculated = device_sectors or 1
                if raw and device_sectors:
                    device, requested = device_sectors, requested | set(range(device_sectors))
                useful = min(device, speculated)
            moved = speculated + device - useful
            self.count["speculative_fills"] += 1
            self.count["misspeculated_fills"] += speculated > useful
            self.count["misspeculated_sectors"] += speculated - useful
        self.count["device.demand"] += demand
        self.count["device.overfetch"] += moved - demand
        if buddy:
            self.count["buddy_fills"] += 1
            self.count["link.demand"] += SECTOR_BYTES * min(n_requested - demand, buddy)
            self.count["link.overfetch"] += SECTOR_BYTES * (buddy - min(n_requested - demand, buddy))
        return requested if raw else {0, 1, 2, 3}

    def write_back(self, entry: int, line: RefLineSectors) -> None:
        """Move the sectors that the write-back of a line needs."""
        placement, device_sectors = self.placement_of(entry)
        if placement == Placement.HOST:
            self.count["link.writeback"] += SECTOR_BYTES * len(line.dirty)
            return
        if placement == Placement.DEVICE:
            self.count["device.writeback"] += len(line.dirty)
            return
        before, after = self.state[entry] & 7, self.state[entry] >> 4
        change = self.size_state(after) - self.size_state(before)
        self.metadata_found(entry, change != 0)
        raw = self.stored_raw(device_sectors, before)
        old, new = self.split(device_sectors, before), self.split(device_sectors, after)
        if raw:
            old = self.split_raw(device_sectors, {0, 1, 2, 3} - line.valid)
            new = self.split_raw(device_sectors, line.dirty) if after == 7 else new
        touches_buddy = new[1] > 0
        if line.valid != {0, 1, 2, 3} and not (raw and after == 7):
            self.count["device.read_modify_write"] += old[0]
            self.count["link.read_modify_write"] += SECTOR_BYTES * old[1]
            touches_buddy |= old[1] > 0
        self.count["device.writeback"] += new[0]
        self.count["link.writeback"] += SECTOR_BYTES * new[1]
        self.count["buddy_writebacks"] += touches_buddy
        self.count["class_increases"] += change > 0
        self.count["class_decreases"] += change < 0
        self.state[entry] = after | after << 4

    def size_state(self, size_class: int) -> int:
        """Return the size as metadata encode it, in rising order: 0 B, 8 B, one to four sectors."""
        if size_class == 1 and self.n["eight_byte_class"]:
            return 1
        return 0 if size_class == 0 else SECTORS_OF_CLASS[size_class] + 1

    def metadata_found(self, entry: int, write: bool) -> bool:
        """Look an entry's size up; return whether its metadata line is valid or pending.

        A miss fetches the line, which covers the entry's neighbours too.
        """
        if self.scheme != "buddy" or self.n["perfect_metadata"]:
            return True
        units, sectors = self.n["metadata_slices"], self.n["metadata_line_sectors"]
        number = entry // (64 * sectors)
        local, position = divmod(number, units)
        line, hit, victim = self.metadata.access((position + fold(local) % units) % units, local, number)
        self.count["metadata_accesses"] += 1
        self.count["metadata_found"] += hit
        if not hit:
            self.count["device.metadata_read"] += sectors
        if victim and victim[1].dirty:
            self.count["device.metadata_write"] += sectors
        if write:
            line.dirty.add(0)
        return hit
