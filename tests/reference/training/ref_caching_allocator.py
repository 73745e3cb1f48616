"""Reference model of the CUDA caching allocator: segments as lists of their parts, everything by search.

No pools, no links, no counters: each question is answered by looking at all parts. Written from the notes at the
head of PyTorch's ``c10/cuda/CUDACachingAllocator.cpp`` and its member functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from buddysim.training.caching_allocator import AllocatorSettings
from buddysim.training.caching_allocator.driver import DeviceMemory
from buddysim.training.caching_allocator.rounding import rounded_size

MIB = 1 << 20


class RefOutOfMemory(Exception):
    """A request fails."""


@dataclass
class RefPart:
    address: int
    size: int
    state: str = "free"
    requested: int = 0
    freed_at: int = 0


@dataclass
class RefSegment:
    stream: int
    small: bool
    expandable: bool
    parts: list[RefPart]
    address: int = field(init=False)

    def __post_init__(self) -> None:
        self.address = self.parts[0].address

    def tail(self, index: int) -> int:
        """Bytes of a part, and of unmapped addresses behind it."""
        behind = self.parts[index + 1 : index + 2]
        return self.parts[index].size + sum(part.size for part in behind if part.state == "unmapped")

    def settle(self) -> None:
        """Make neighbours one that are both free, or both unmapped."""
        settled: list[RefPart] = []
        for part in self.parts:
            if settled and part.state == settled[-1].state and part.state in ("free", "unmapped"):
                settled[-1].size += part.size
                settled[-1].freed_at = max(settled[-1].freed_at, part.freed_at)
            else:
                settled.append(part)
        self.parts = settled


class RefCachingAllocator:
    def __init__(self, settings: AllocatorSettings, driver: DeviceMemory, device_memory: int | None = None) -> None:
        self.settings = settings
        self.driver = driver
        memory = driver.capacity if device_memory is None else device_memory
        self.limit = None if memory is None else int(settings.per_process_memory_fraction * memory)
        self.segments: list[RefSegment] = []
        self.searches = {False: 0, True: 0}

    def in_state(self, *states: str) -> list[RefPart]:
        return [part for segment in self.segments for part in segment.parts if part.state in states]

    @property
    def allocated(self) -> int:
        return sum(part.size for part in self.in_state("allocated"))

    @property
    def active(self) -> int:
        return sum(part.size for part in self.in_state("allocated", "pending"))

    @property
    def requested(self) -> int:
        return sum(part.requested for part in self.in_state("allocated", "pending"))

    @property
    def reserved(self) -> int:
        return sum(part.size for part in self.in_state("allocated", "pending", "free"))

    def allocate(self, requested: int, stream: int = 0) -> int:
        size = rounded_size(requested, self.settings)
        small = size <= MIB
        fit = self._fit(size, small, stream) or self._obtained(size, small, stream)
        if fit is None:
            raise RefOutOfMemory
        segment, part = fit
        rest = part.size - size
        if small or self.settings.expandable_segments:
            splits = rest >= 512
        else:
            limit = self.settings.max_split_size
            splits = rest > MIB and (limit is None or size < limit)
        if splits:
            at = segment.parts.index(part) + 1
            segment.parts.insert(at, RefPart(part.address + size, rest, freed_at=self.searches[small]))
            part.size = size
        part.state, part.requested = "allocated", requested
        return part.address

    def request_free(self, address: int) -> None:
        self._part(address)[1].state = "pending"

    def complete_free(self, address: int) -> None:
        segment, part = self._part(address)
        part.state, part.freed_at = "free", self.searches[segment.small]
        segment.settle()

    def empty_cache(self) -> None:
        for segment in self._sorted():
            if not segment.expandable and [part.state for part in segment.parts] == ["free"]:
                self._give_back(segment)
        for segment in self._sorted():
            if segment.expandable:
                self._unmap(segment)

    def _part(self, address: int) -> tuple[RefSegment, RefPart]:
        for segment in self.segments:
            for part in segment.parts:
                if part.address == address and part.state in ("allocated", "pending"):
                    return segment, part
        raise KeyError(address)

    def _sorted(self) -> list[RefSegment]:
        return sorted(self.segments, key=lambda one: (one.small, one.stream, one.parts[0].size, one.address))

    def _free_parts(self, small: bool, stream: int) -> list[tuple[RefSegment, RefPart]]:
        """Free parts of a pool, smallest first, then lowest address."""
        pool = [one for one in self.segments if one.small == small and one.stream == stream]
        pairs = [(one, part) for one in pool for part in one.parts if part.state == "free"]
        return sorted(pairs, key=lambda pair: (pair[1].size, pair[1].address))

    def _fit(self, size: int, small: bool, stream: int) -> tuple[RefSegment, RefPart] | None:
        self.searches[small] += self._collects
        fits = [pair for pair in self._free_parts(small, stream) if pair[1].size >= size]
        if not self.settings.expandable_segments:
            fits = [pair for pair in fits if not pair[0].expandable]
        if not fits:
            return None
        if fits[0][0].expandable:
            extents = [segment.tail(segment.parts.index(part)) for segment, part in fits]
            best = 0
            while best + 1 < len(fits) and fits[best][0].expandable and extents[best + 1] < extents[best]:
                best += 1
            fits = fits[best:]
        limit = self.settings.max_split_size
        slack = self.settings.max_non_split_rounding or self.settings.large_segment_size
        has = fits[0][1].size
        if limit is not None and (has >= limit if size < limit else has >= size + slack):
            return None
        return fits[0]

    @property
    def _collects(self) -> bool:
        return self.settings.garbage_collection_threshold > 0 and self.limit is not None

    def _obtained(self, size: int, small: bool, stream: int) -> tuple[RefSegment, RefPart] | None:
        if self._collects:
            self._collect()
        obtained = self._from_driver(size, small, stream)
        if obtained is None and self._give_back_oversize(size, small, stream):
            obtained = self._from_driver(size, small, stream)
        if obtained is None:
            self.empty_cache()
            obtained = self._from_driver(size, small, stream)
        return obtained

    def _from_driver(self, size: int, small: bool, stream: int) -> tuple[RefSegment, RefPart] | None:
        if small:
            amount = 2 * MIB
        elif size < 10 * MIB:
            amount = self.settings.large_segment_size
        else:
            amount = -(-size // (2 * MIB)) * 2 * MIB
        if self.limit is not None and self.reserved + amount > self.limit:
            return None
        if self.settings.expandable_segments:
            return self._expanded(size, small, stream)
        address = self.driver.allocate(amount)
        if address is None:
            return None
        segment = RefSegment(stream, small, False, [RefPart(address, amount)])
        self.segments.append(segment)
        return segment, segment.parts[0]

    def _page(self, small: bool) -> int:
        return 2 * MIB if small else self.settings.large_segment_size

    def _expanded(self, size: int, small: bool, stream: int) -> tuple[RefSegment, RefPart] | None:
        segment, start = self._run(size, small, stream)
        page = self._page(small)
        while True:
            part = next(one for one in segment.parts if one.address + one.size > start)
            if part.state == "free" and part.size >= size:
                return segment, part
            index = segment.parts.index(part)
            backed = part.size if part.state == "free" else 0
            hole = segment.parts[index + 1] if backed else part
            amount = -(-min(size - backed, hole.size) // page) * page
            if not self.driver.available(amount):
                return None
            self.driver.take(amount)
            at = segment.parts.index(hole)
            mapped = RefPart(hole.address, amount, freed_at=self.searches[small])
            rest = [RefPart(hole.address + amount, hole.size - amount, "unmapped")] if amount < hole.size else []
            segment.parts[at : at + 1] = [mapped, *rest]
            segment.settle()

    def _run(self, size: int, small: bool, stream: int) -> tuple[RefSegment, int]:
        """The lowest address at which free and unmapped parts in a row suffice; one of them is unmapped."""
        pool = [one for one in self.segments if (one.small, one.stream, one.expandable) == (small, stream, True)]
        for segment in sorted(pool, key=lambda one: one.address):
            for index, part in enumerate(segment.parts):
                if part.state != "unmapped":
                    continue
                first = index - 1 if index and segment.parts[index - 1].state == "free" else index
                total = 0
                for one in segment.parts[first:]:
                    if one.state not in ("free", "unmapped"):
                        break
                    total += one.size
                if total >= size:
                    return segment, segment.parts[first].address
        page = self._page(small)
        memory = self.driver.capacity
        span = (1 << 42) if memory is None else memory + memory // 8
        span = max(-(-span // page), -(-size // page)) * page
        segment = RefSegment(stream, small, True, [RefPart(self.driver.reserve(span), span, "unmapped")])
        self.segments.append(segment)
        return segment, segment.address

    def _unmap(self, segment: RefSegment) -> None:
        page = self._page(segment.small)
        parts: list[RefPart] = []
        for part in segment.parts:
            begin = segment.address + -(-(part.address - segment.address) // page) * page
            end = segment.address + (part.address + part.size - segment.address) // page * page
            if part.state != "free" or begin >= end:
                parts.append(part)
                continue
            self.driver.give_back(end - begin)
            cuts = [(part.address, begin, "free"), (begin, end, "unmapped"), (end, part.address + part.size, "free")]
            now = self.searches[segment.small]
            parts += [RefPart(low, high - low, state, freed_at=now) for low, high, state in cuts if low < high]
        segment.parts = parts
        segment.settle()
        if [part.state for part in segment.parts] == ["unmapped"]:
            self.segments.remove(segment)

    def _give_back(self, segment: RefSegment) -> None:
        self.segments.remove(segment)
        self.driver.free(segment.address, segment.parts[0].size)

    def _give_back_oversize(self, size: int, small: bool, stream: int) -> bool:
        limit = self.settings.max_split_size
        if limit is None:
            return False
        needed = max(size, limit)
        parts = self._free_parts(small, stream)
        larger = [pair for pair in parts if pair[1].size >= needed]
        if larger and not larger[0][0].expandable:
            self._give_back(larger[0][0])
            return True
        released = 0
        for segment, part in reversed([pair for pair in parts if pair[1].size < needed]):
            if released >= needed or part.size < limit:
                break
            if not segment.expandable:
                released += part.size
                self._give_back(segment)
        return released >= needed

    def _collect(self) -> None:
        assert self.limit is not None
        excess = self.reserved - int(self.settings.garbage_collection_threshold * self.limit)
        if excess <= 0:
            return
        whole = [one for one in self._sorted() if not one.small and [part.state for part in one.parts] == ["free"]]
        while excess > 0 and whole:
            ages = [self.searches[False] - one.parts[0].freed_at for one in whole]
            mean = Fraction(sum(ages), len(ages))
            old = [one for one, age in zip(whole, ages, strict=True) if age >= mean and not one.expandable]
            if not old:
                return
            for segment in old:
                excess -= segment.parts[0].size
                self._give_back(segment)
                whole.remove(segment)
