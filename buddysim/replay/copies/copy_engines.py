"""Copy engines: memcpys and memsets as the trace's events, in time or at once (docs/reference/replay-rules.md)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.compress import ENTRY_BYTES
from buddysim.machine import Machine
from buddysim.replay.copies.copied_range import CopiedRange
from buddysim.replay.copies.copy_effects import CopyEffects
from buddysim.trace import Kernel, Memcpy, Memset, Trace

if TYPE_CHECKING:
    from buddysim.replay.driver import ReplayRun

PORTION_BYTES = 16 * 1024
#: Portions of a copy between its engine and memory at once: 1 MiB.
MAX_UNDER_WAY = 64
#: A longer memcpy or memset takes its time in one portion, without traffic: the simulator would take minutes.
MAX_MOVED_BYTES = 256 * 2**20
#: Latest time of a run (ps), as of issue events.
END_PS = 2**55
ON_DEVICE = "dtod"


def timed_positions(trace: Trace, machine: Machine, kernels: Sequence[Kernel]) -> range:
    """Return the positions of the events whose copies take time, in a run of kernels."""
    if machine.copies.timed == "none":
        return range(0)
    if machine.copies.timed == "all":
        return range(len(trace.events))
    return range(kernels[0].event, kernels[-1].event) if kernels else range(0)


@dataclass
class TimedCopy:
    """A memcpy or memset in flight.

    Attributes
    ----------
    stream : that it runs in
    kind : of its engine
    bytes_per_s : of the engine for it
    ready_ps : earliest time of its first byte
    portions : what is left of it, as ranges that are read and written; None where a side is not in the device
    end_entry : behind the last entry that it writes
    under_way : times at which the latest portions are in memory, or have left it
    """

    stream: int
    kind: str
    bytes_per_s: int
    ready_ps: int
    portions: Iterator[tuple[CopiedRange | None, CopiedRange | None]]
    end_entry: int
    under_way: deque[int] = field(default_factory=lambda: deque(maxlen=MAX_UNDER_WAY))


class CopyEngines:
    """The copies of a run; those without time are applied at once.

    Parameters
    ----------
    trace, machine : of the run, which every method is given: a run that its own parts refer to lives on after its end
    timed : positions of events whose copies take time (`timed_positions`)
    """

    def __init__(self, trace: Trace, machine: Machine, timed: range) -> None:
        self.machine, self.timed, self.effects = machine, timed, CopyEffects(trace)
        self.first_handle = len(trace.kernels)
        self.running: dict[int, TimedCopy] = {}  # by handle: those that an engine has begun
        self.waiting: dict[int, TimedCopy] = {}  # by handle, in the order of the trace
        self.counts = {"copies.moved": 0, "copies.bytes": 0, "copies.busy_ps": 0, "trace.skipped_copies": 0}

    @property
    def streams(self) -> set[int]:
        """Streams with a copy that hasn't ended."""
        return {copy.stream for copy in (*self.running.values(), *self.waiting.values())}

    def has(self, handle: int) -> bool:
        """Return whether a handle of the engine is a copy's."""
        return handle in self.running

    def apply(self, run: ReplayRun, position: int, event: Memcpy | Memset) -> bool:
        """Apply a memcpy or memset, or put it into the queue of its engines; False if it can't begin now."""
        if not event.bytes:
            return True
        to_host = isinstance(event, Memcpy) and event.kind == "dtoh"
        written = None if to_host else self._range_at(run, event.address, event.bytes)
        read = None
        if isinstance(event, Memcpy) and event.kind != "htod":
            source = event.address if to_host else event.source
            read = None if source is None else self._range_at(run, source, event.bytes)
        if position in self.timed and (read or written):
            return self._start(run, position, event, read, written)
        if written is not None:
            self.effects.overwrite(run, position, written, written.entries[1])
        elif not to_host:
            self.counts["trace.skipped_copies"] += 1
        return True

    def _range_at(self, run: ReplayRun, address: int, n_bytes: int) -> CopiedRange | None:
        """Return the range from an address on; None outside every live allocation."""
        region = run.engine.allocation_of_line(address // ENTRY_BYTES)
        return None if region < 0 else CopiedRange.of(run.address_space.ranges[region], address, n_bytes)

    def _start(
        self,
        run: ReplayRun,
        position: int,
        event: Memcpy | Memset,
        read: CopiedRange | None,
        written: CopiedRange | None,
    ) -> bool:
        """Put a copy into the queue of its engines; False if the replay engine has no slot for its times."""
        handle = self.first_handle + position
        latency_ps = event.latency_ps if isinstance(event, Memcpy) and event.latency_ps else None
        kind = event.kind if isinstance(event, Memcpy) else ON_DEVICE
        copy = TimedCopy(
            event.stream,
            kind,
            rate_of(self.machine, event),
            run.engine.now_ps + (self.machine.ps(self.machine.copies.latency) if latency_ps is None else latency_ps),
            _portions(read, written),
            written.entries[1] if written else 0,
        )
        self.waiting[handle] = copy
        if not self._begin(run, kind):
            del self.waiting[handle]
            return False
        self.counts["copies.moved"] += 1
        self.counts["copies.bytes"] += event.bytes
        return True

    def proceed(self, run: ReplayRun, handle: int) -> bool:
        """Move the next portion of a copy, whose time has come, or end the copy; return whether it has ended."""
        copy = self.running[handle]
        engine, now = run.engine, run.engine.now_ps
        portion = next(copy.portions, None)
        if portion is None and copy.under_way:
            end_ps = max(copy.under_way)
            copy.under_way.clear()
            if end_ps > now:
                self._schedule(run, handle, end_ps)
                return False
        if portion is None:
            del self.running[handle]
            self._begin(run, copy.kind)
            return True
        moved = next(part.bytes for part in portion if part is not None)
        done_ps = now
        for part, writes in zip(portion, (False, True), strict=True):
            if part is None:
                continue
            if moved <= PORTION_BYTES:
                self.effects.make_accessible(run, part, part.entries[0])
            if writes:
                self.effects.overwrite(run, handle - self.first_handle, part, copy.end_entry)
            if moved <= PORTION_BYTES:
                done_ps = max(done_ps, engine.move(*part.touched_sectors, writes, copy.bytes_per_s))
        passed_ps = -(-moved * 10**12 // copy.bytes_per_s)
        self.counts["copies.busy_ps"] += passed_ps
        oldest_ps = copy.under_way[0] if len(copy.under_way) == MAX_UNDER_WAY else 0
        copy.under_way.append(max(done_ps, now + passed_ps))
        self._schedule(run, handle, max(now + passed_ps, oldest_ps))
        return False

    def _begin(self, run: ReplayRun, kind: str) -> bool:
        """Let the engines of a kind begin waiting copies; False if the last of those can't begin for lack of a slot."""
        free = self.machine.copies.engines - sum(copy.kind == kind for copy in self.running.values())
        for handle, copy in [item for item in self.waiting.items() if item[1].kind == kind][:free]:
            if not self._schedule(run, handle, max(copy.ready_ps, run.engine.now_ps)):
                return False
            self.running[handle] = self.waiting.pop(handle)
        return True

    def _schedule(self, run: ReplayRun, handle: int, at_ps: int) -> bool:
        """Have the engine report a time, as the end of a kernel without thread blocks."""
        if at_ps >= END_PS:
            raise BuddysimError(
                f"{run.trace.path}: a memcpy ends later than a run on {run.machine.name} can go: "
                f"{END_PS / 3600e12:.1f} hours of simulated time"
            )
        return run.engine.start_kernel(handle, at_ps, 0, 1, 32, 0, 0)


def rate_of(machine: Machine, event: Memcpy | Memset) -> int:
    """Return an engine's bytes per second; within the device a byte is read and written, by a memset written."""
    if isinstance(event, Memset):
        return machine.dram_bytes_per_s
    if event.kind == ON_DEVICE:
        return machine.dram_bytes_per_s // 2
    if event.host_memory == "pageable":
        return machine.bytes_per_s(machine.copies.pageable_bandwidth)
    return machine.bytes_per_s(machine.copies.h2d_bandwidth if event.kind == "htod" else machine.copies.d2h_bandwidth)


def _portions(
    read: CopiedRange | None, written: CopiedRange | None
) -> Iterator[tuple[CopiedRange | None, CopiedRange | None]]:
    """Cut a copy into portions, by the addresses that it writes, or else reads; a very long one is not cut."""
    if max(part.bytes for part in (read, written) if part is not None) > MAX_MOVED_BYTES:
        yield read, written
        return
    if written is None:
        assert read is not None
        yield from ((portion, None) for portion in read.portions(PORTION_BYTES))
        return
    for portion in written.portions(PORTION_BYTES):
        yield (read.part(portion.first_byte - written.first_byte, portion.bytes) if read else None), portion
