"""Copies in time: engines, portions, and what memory and link move for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from buddysim.machine import Machine
from buddysim.trace import Memcpy, Memset
from tests.reference.replay.parts import RefComponents
from tests.reference.replay.primitives.caches import RefCacheLine
from tests.reference.replay.space import RefAllocationRange

PORTION = 16 * 1024
PORTIONS_UNDER_WAY = 64
PS_PER_S = 10**12


@dataclass(frozen=True)
class RefPortion:
    """Bytes of one allocation, from its base on."""

    allocation_range: RefAllocationRange
    bytes: range

    def touched(self) -> dict[int, int]:
        """Return the mask of sectors of which a byte is among them, by entry, in rising order."""
        masks: dict[int, int] = {}
        for sector in range(self.bytes[0] // 32, self.bytes[-1] // 32 + 1):
            entry = self.allocation_range.first + sector // 4
            masks[entry] = masks.get(entry, 0) | 1 << sector % 4
        return masks


@dataclass(eq=False)
class RefTimedCopy:
    """A copy in flight; `due` is when its next portion, or its end, is due."""

    position: int
    event: Memcpy | Memset
    reads: RefPortion | None
    writes: RefPortion | None
    ready: int
    due: int | None = None
    moved: int = 0
    arrivals: list[int] = field(default_factory=list)
    ending: bool = False

    @property
    def kind(self) -> str:
        return self.event.kind if isinstance(self.event, Memcpy) else "dtod"

    def next_portion(self) -> tuple[RefPortion | None, RefPortion | None]:
        """Return the next portion, cut at multiples of 16 KiB of the run's entries."""
        cut = self.writes or self.reads
        assert cut is not None
        if self.moved >= len(cut.bytes):
            return None, None
        start = cut.bytes[0] + self.moved + 128 * cut.allocation_range.first
        size = min(PORTION - start % PORTION, len(cut.bytes) - self.moved)
        assert len(cut.bytes) <= 256 << 20, "not in this model: one portion without traffic"
        parts = []
        for side in (self.reads, self.writes):
            part = side.bytes[self.moved : self.moved + size] if side else range(0)
            parts.append(RefPortion(side.allocation_range, part) if side and part else None)
        self.moved += size
        return parts[0], parts[1]


def bytes_per_s(machine: Machine, event: Memcpy | Memset) -> int:
    """Return the rate of an engine for an event."""
    channels = machine.dram.channels * machine.dram.pseudo_channels
    memory = channels * machine.bytes_per_s(machine.dram.pseudo_channel_bandwidth)
    if isinstance(event, Memset):
        return memory
    if event.kind == "dtod":
        return memory // 2
    rates = {"htod": machine.copies.h2d_bandwidth, "dtoh": machine.copies.d2h_bandwidth}
    return machine.bytes_per_s(
        machine.copies.pageable_bandwidth if event.host_memory == "pageable" else rates[event.kind]
    )


class RefCopyEngines:
    """The copies of a run that have begun or wait for an engine; `write` applies a written portion to L2 and sizes."""

    def __init__(self, parts: RefComponents, write: Callable[[int, RefPortion, int], None]) -> None:
        self.parts, self.machine, self.write = parts, parts.numbers.machine, write
        self.waiting: list[RefTimedCopy] = []
        self.running: list[RefTimedCopy] = []
        self.last_end = self.timed = self.bytes = self.busy = 0

    def streams(self) -> set[int]:
        return {copy.event.stream for copy in (*self.waiting, *self.running)}

    def add(self, copy: RefTimedCopy) -> None:
        self.timed += 1
        self.bytes += copy.event.bytes
        self.waiting.append(copy)
        self._begin(copy.kind)

    def _begin(self, kind: str) -> None:
        of_kind = [copy for copy in self.waiting if copy.kind == kind]
        free = self.machine.copies.engines - sum(copy.kind == kind for copy in self.running)
        for copy in of_kind[:free]:
            self.waiting.remove(copy)
            self.running.append(copy)
            copy.due = max(copy.ready, self.parts.clock.now)

    def proceed(self, copy: RefTimedCopy) -> bool:
        """Move a copy's next portion, which is due now; return whether the copy has ended."""
        now, rate = self.parts.clock.now, bytes_per_s(self.machine, copy.event)
        reads, writes = copy.next_portion() if not copy.ending else (None, None)
        if reads is None and writes is None:
            last = max(copy.arrivals[-PORTIONS_UNDER_WAY:], default=now)
            if not copy.ending and last > now:
                copy.ending, copy.due = True, last
                return False
            self.running.remove(copy)
            self.last_end = now
            self._begin(copy.kind)
            return True
        arrival = max([now, *self._read(reads, now, rate), *self._write(copy, writes, now, rate)])
        size = len((reads or writes).bytes)  # type: ignore[union-attr]
        passed = -(-size * PS_PER_S // rate)
        self.busy += passed
        before = copy.arrivals[-PORTIONS_UNDER_WAY] if len(copy.arrivals) >= PORTIONS_UNDER_WAY else 0
        copy.arrivals.append(max(arrival, now + passed))
        copy.due = max(now + passed, before)
        return False

    def _moves(self, portion: RefPortion, now: int, rate: int) -> list[tuple[int, int, int]]:
        """Return entry, sectors and time of what an engine reads from or writes to the GPU's memory."""
        below, touched = self.parts.below, portion.touched()
        times = {entry: now + (entry - min(touched)) * 128 * PS_PER_S // rate for entry in touched}
        moved = (entry for entry in touched if not below.on_host(entry) and below.is_resident(entry))
        return [(entry, touched[entry], times[entry]) for entry in moved]

    def _read(self, portion: RefPortion | None, now: int, rate: int) -> list[int]:
        arrivals = []
        for entry, mask, at in self._moves(portion, now, rate) if portion else []:
            line = self.parts.l2.cache.peek(entry)
            missing = mask & ~(line.valid | line.pending if line else 0)
            if missing:
                self.parts.counts["l2.fills"] += 1
                arrivals.append(self.parts.below.fill(entry, missing, 0, at)[1])
            else:
                arrivals.append(at)
        return arrivals

    def _write(self, copy: RefTimedCopy, portion: RefPortion | None, now: int, rate: int) -> list[int]:
        if portion is None or copy.writes is None:
            return []
        parts = self.parts
        self.write(copy.position, portion, copy.writes.bytes[-1])
        moves = self._moves(portion, now, rate)
        parts.counts["l2.writebacks"] += len(moves)
        return [parts.l2.take_back(entry, RefCacheLine(valid=mask, dirty=mask), at) for entry, mask, at in moves]
