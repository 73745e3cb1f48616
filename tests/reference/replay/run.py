"""A run: events of the trace, issue slots, kernels and their thread blocks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from buddysim.buddy import Targets
from buddysim.trace import OP_BARRIER, Kernel, KernelLaunch, Memcpy, Memset, Trace
from tests.reference.replay.engine import copies
from tests.reference.replay.engine.copy_engines import RefCopyEngines, RefPortion, RefTimedCopy
from tests.reference.replay.operations import RefBlockProgram, read_blocks
from tests.reference.replay.parts import RefComponents
from tests.reference.replay.schemes.paths import region_of
from tests.reference.replay.sm.thread_blocks import RefRunningKernel, RefSm
from tests.reference.replay.sm.warps import RefWarp
from tests.reference.replay.space import RefAddressSpace

MAX_KERNELS = 128


class RefRun:
    """A replay from start to end.

    Parameters
    ----------
    trace : the trace
    selected : which kernels run, by their index
    targets : of its allocations
        space : entry numbers of its allocations
    parts : of the machine

    Attributes
    ----------
    ended : the kernels that ran, in the order of their ends, with the time of each end (ps)
    """

    def __init__(
        self, trace: Trace, selected: set[int], targets: Targets, space: RefAddressSpace, parts: RefComponents
    ) -> None:
        self.trace, self.selected, self.targets, self.space, self.parts = trace, selected, targets, space, parts
        self.clock, self.counts = parts.clock, parts.counts
        self.next_sm = 0
        self.any_launched = False
        self.running: list[RefRunningKernel] = []
        self.waiting = list(range(len(trace.events)))
        self.copies = RefCopyEngines(parts, self._write)
        self.timed = self._timed()
        self.ended: list[tuple[RefRunningKernel, int, Counter[str]]] = []
        self._go_on()
        while self._step():
            pass
        self._begin_and_end_allocations(len(trace.events))

    # -- what happens next --------------------------------------------------------------------------------------------

    def _step(self) -> bool:
        """Start a kernel or take an issue slot, whichever is first; return False if nothing is left."""
        slots = [
            (scheduler.next_slot, sm, number)
            for sm, own in enumerate(self.parts.schedulers)
            for number, scheduler in enumerate(own)
            if scheduler.next_slot is not None
        ]
        slot = min(slots, default=None)
        starts: list[tuple[int, int, RefRunningKernel | RefTimedCopy]] = [
            (k.starts, k.kernel.index, k) for k in self.running if not k.started
        ]
        kernels = len(self.trace.kernels)
        starts += [(copy.due, kernels + copy.position, copy) for copy in self.copies.running if copy.due is not None]
        at, _, start = min(starts, key=lambda one: one[:2], default=(0, 0, None))
        if start is not None and (slot is None or at <= slot[0]):
            self.clock.now = max(self.clock.now, at)
            if isinstance(start, RefTimedCopy):
                if self.copies.proceed(start):
                    self._go_on()
            else:
                self._start(start)
        elif slot is not None:
            self.clock.now, sm, number = slot
            if self.parts.below.pages is not None:
                self.parts.below.pages.serve_what_is_due(self.clock.now)
            self._issue(sm, number)
        return start is not None or slot is not None

    def _issue(self, sm: int, number: int) -> None:
        scheduler, now = self.parts.schedulers[sm][number], self.clock.now
        warp = scheduler.choose(now)
        if warp is None:
            return
        until = self.parts.below.wake(sm, warp, warp.op is None, now)
        if until > now:
            warp.ready = until
            return
        op = warp.op
        if op is None:
            if warp.block.end_of_stores() > now:
                warp.ready = warp.block.end_of_stores()
                return
            scheduler.ended(warp)
            self._warp_ended(sm, warp)
            return
        self.counts["memory_instructions"] += op.kind != OP_BARRIER
        arrival, issued = self.parts.l1s[sm].instruction(op, now, warp.block.owner.kernel.launch_index)
        scheduler.issued(warp, now, issued)
        warp.issued(op, issued, arrival)
        if op.kind == OP_BARRIER:
            self.parts.sms[sm].at_barrier(warp, now)
        else:
            warp.next()

    # -- kernels and thread blocks ------------------------------------------------------------------------------------

    def _start(self, kernel: RefRunningKernel) -> None:
        kernel.started = True
        kernel.stale_l1s = set(range(len(self.parts.sms)))
        sms = self.parts.sms
        for other in self._by_precedence():
            n_full = 0
            while other.waiting and n_full < len(sms):
                sm = sms[self.next_sm]
                self.next_sm = (self.next_sm + 1) % len(sms)
                if sm.has_capacity(other):
                    self._dispatch(other, sm)
                    n_full = 0
                else:
                    n_full += 1
        self._end_kernels()

    def _dispatch(self, kernel: RefRunningKernel, sm: RefSm) -> None:
        """The kernel's next thread block begins on an SM, whose L1 has nothing from before the kernel's start."""
        if kernel.waiting[0].warps and sm.number in kernel.stale_l1s:
            self.parts.l1s[sm.number].cache.clear()
            for other in self.running:
                other.stale_l1s.discard(sm.number)
        sm.dispatch(kernel, self.clock.now)

    def _by_precedence(self) -> list[RefRunningKernel]:
        return sorted((k for k in self.running if k.started), key=lambda k: k.starts)

    def _warp_ended(self, sm: int, warp: RefWarp) -> None:
        if not self.parts.sms[sm].warp_ended(warp, self.clock.now):
            return
        while True:
            able = [k for k in self._by_precedence() if k.waiting and self.parts.sms[sm].has_capacity(k)]
            if not able:
                break
            self._dispatch(able[0], self.parts.sms[sm])
        self._end_kernels()

    def _end_kernels(self) -> None:
        over = [kernel for kernel in self.running if kernel.ended]
        for kernel in over:
            self.running.remove(kernel)
            self.ended.append((kernel, self.clock.now, self.counts - Counter(kernel.before)))
        if over:
            self._go_on()

    # -- events of the trace ------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Process the trace's events that may start now, each after those before it in its stream."""
        held: set[int] = set()
        for position in self.waiting[:1024]:
            stream, changes = self.trace.stream_of(self.trace.events[position]), self.space.changes_at(position)
            if 0 in held or (held and (changes or stream == 0)):
                break
            if stream not in held and self._may_start(position):
                self._begin_and_end_allocations(position)
                self._begin(position)
                self.waiting.remove(position)
            elif changes:
                break
            else:
                held.add(stream)

    def _may_start(self, position: int) -> bool:
        if not self.running and not self.copies.streams():
            return True
        event, stream = self.trace.events[position], self.trace.stream_of(self.trace.events[position])
        if len(self.running) + len(self.copies.running) == MAX_KERNELS:
            return False
        streams = {k.kernel.stream for k in self.running} | self.copies.streams()
        alone = not self.parts.numbers.machine.kernel.concurrent_kernels and isinstance(event, KernelLaunch)
        if stream == 0 or streams & {0, stream} or (alone and self.running):
            return False
        return position not in self.space.waiting_events

    def _begin(self, position: int) -> None:
        event = self.trace.events[position]
        if isinstance(event, KernelLaunch):
            if event.kernel in self.selected:
                self._launch(self.trace.kernels[event.kernel])
        else:
            self._copy(position, event)

    def _timed(self) -> range:
        """Return the positions whose copies take time."""
        which, events = self.parts.numbers.machine.copies.timed, self.trace.events
        launched = [n for n, e in enumerate(events) if isinstance(e, KernelLaunch) and e.kernel in self.selected]
        if which == "all":
            return range(len(events))
        return range(launched[0], launched[-1]) if which == "between" and launched else range(0)

    def _begin_and_end_allocations(self, position: int) -> None:
        below = self.parts.below
        for allocation_range in self.space.freed(position):
            copies.free(self.parts.l2, allocation_range, self.counts)
            below.live.remove(next(region for region in below.live if region.allocation_range is allocation_range))
        for allocation_range in self.space.begins_at(position):
            target = self.targets.of(allocation_range.allocation.index)
            region = region_of(allocation_range, below.scheme, target, below.machine.buddy.bypass_1x)
            below.regions.append(region)
            below.live.append(region)
            if below.uses_sizes:
                self.parts.sizes.begin(allocation_range)

    def _launch(self, kernel: Kernel) -> None:
        starts = self.clock.now + self.parts.numbers.launch_latency
        self.any_launched = True
        blocks = [self._in_entries(block, kernel.event) for block in read_blocks(self.trace, kernel)]
        self.running.append(RefRunningKernel(kernel, self.clock.now, starts, blocks, before=dict(self.counts)))

    def _in_entries(self, block: RefBlockProgram, position: int) -> RefBlockProgram:
        """Return a thread block of an event's kernel with lines numbered by the run's entries."""
        warps = []
        for warp in block.warps:
            ops = [
                replace(op, lines=[line._replace(number=self.space.entry(line.number, position)) for line in op.lines])
                for op in warp.ops
            ]
            warps.append(replace(warp, ops=ops))
        return replace(block, warps=warps)

    def _copied(self, position: int, address: int | None, n_bytes: int) -> RefPortion | None:
        """Return the bytes of a copy that lie in a live allocation."""
        live = (a for a in self.trace.allocations if a.live_at(position))
        allocation = next((a for a in live if address is not None and a.base <= address < a.end), None)
        if allocation is None or address is None or not n_bytes:
            return None
        first = address - allocation.base
        return RefPortion(self.space.ranges[allocation.index], range(first, min(first + n_bytes, allocation.bytes)))

    def _copy(self, position: int, event: Memcpy | Memset) -> None:
        """Apply a copy or fill, or let an engine begin it."""
        if not event.bytes:
            return
        machine = self.parts.numbers.machine
        to_host = isinstance(event, Memcpy) and event.kind == "dtoh"
        writes = None if to_host else self._copied(position, event.address, event.bytes)
        reads = None
        if isinstance(event, Memcpy) and event.kind != "htod":
            reads = self._copied(position, event.address if to_host else event.source, event.bytes)
        timed = position in self.timed and (reads or writes)
        if timed:
            latency = event.latency_ps if isinstance(event, Memcpy) else None
            ready = self.clock.now + (machine.ps(machine.copies.latency) if latency is None else latency)
            self.copies.add(RefTimedCopy(position, event, reads, writes, ready))
        elif writes is None:
            self.counts["trace.skipped_copies"] += not to_host
        else:
            self._write(position, writes, writes.bytes[-1])

    def _write(self, position: int, portion: RefPortion, last: int) -> None:
        """Apply a portion of a copy, whose last byte is `last`, to L2 and sizes."""
        parts, machine, allocation_range = self.parts, self.parts.numbers.machine, portion.allocation_range
        covered = copies.covered_sectors(portion.bytes, allocation_range)
        copies.overwrite(parts.l2, covered, self.counts)
        parts.below.written(range(min(covered), max(covered) + 1))
        if parts.below.uses_sizes and self.any_launched:
            before = [e for e in self.trace.events[:position] if isinstance(e, KernelLaunch)]
            launches = 1 + self.trace.kernels[before[-1].kernel].launch_index if before else 0
            copies.resize(parts.sizes, parts.l2.cache, allocation_range, covered, launches)
        most = 2 * machine.l2.size // 128
        cached = machine.l2.fill_on_memcpy and not parts.below.on_host(allocation_range.first)
        if cached and max(covered) > allocation_range.first + last // 128 - most:
            copies.leave_in_l2(parts.l2, covered, self.clock.now, most, parts.below.is_resident)
