"""A run: events of the trace, issue slots, kernels and their thread blocks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from buddysim.buddy import Targets
from buddysim.trace import OP_BARRIER, Event, Kernel, KernelLaunch, Memcpy, Memset, Trace
from tests.reference.replay.engine import copies
from tests.reference.replay.operations import RefBlockProgram, RefLine, read_blocks
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
        self.position = self.next_sm = 0
        self.any_started = False
        self.running: list[RefRunningKernel] = []
        self.ended: list[tuple[RefRunningKernel, int, Counter[str]]] = []
        self._go_on()
        while self._step():
            pass

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
        start = min((k for k in self.running if not k.started), key=lambda k: k.starts, default=None)
        if start is not None and (slot is None or start.starts <= slot[0]):
            self.clock.now = start.starts
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
        self.any_started = True
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
        """Process the trace's events that may start now."""
        events = self.trace.events
        while self.position < len(events):
            event = events[self.position]
            if not self._may_start(event):
                return
            self._begin_and_end_allocations()
            if isinstance(event, KernelLaunch):
                if event.kernel in self.selected:
                    self._launch(self.trace.kernels[event.kernel])
            elif not isinstance(event, Memcpy) or event.kind != "dtoh":
                self._copy(event)
            self.position += 1
        if self.position == len(events) and not self.running:
            self._begin_and_end_allocations()
            self.position += 1

    def _may_start(self, event: Event) -> bool:
        if not self.running:
            return True
        if not isinstance(event, KernelLaunch) or len(self.running) == MAX_KERNELS:
            return False
        stream, streams = self.trace.kernels[event.kernel].stream, {k.kernel.stream for k in self.running}
        concurrent = self.parts.numbers.machine.kernel.concurrent_kernels and stream != 0 and not streams & {0, stream}
        return concurrent and self.position not in self.space.waiting_events

    def _begin_and_end_allocations(self) -> None:
        below = self.parts.below
        for allocation_range in self.space.freed(self.position):
            copies.free(self.parts.l2, allocation_range, self.counts)
            below.live.remove(next(region for region in below.live if region.allocation_range is allocation_range))
        for allocation_range in self.space.begins_at(self.position):
            target = self.targets.of(allocation_range.allocation.index)
            region = region_of(allocation_range, below.scheme, target, below.machine.buddy.bypass_1x)
            below.regions.append(region)
            below.live.append(region)
            if below.uses_sizes:
                self.parts.sizes.begin(allocation_range)

    def _launch(self, kernel: Kernel) -> None:
        starts = self.clock.now + self.parts.numbers.launch_latency
        blocks = [self._in_entries(block) for block in read_blocks(self.trace, kernel)]
        self.running.append(RefRunningKernel(kernel, self.clock.now, starts, blocks, before=dict(self.counts)))

    def _in_entries(self, block: RefBlockProgram) -> RefBlockProgram:
        """Return a thread block with lines numbered by the run's entries."""
        warps = []
        for warp in block.warps:
            ops = [
                replace(
                    op, lines=[line._replace(number=self.space.entry(line.number, self.position)) for line in op.lines]
                )
                for op in warp.ops
            ]
            warps.append(replace(warp, ops=ops))
        return replace(block, warps=warps)

    def _in_space(self, line: RefLine) -> RefLine:
        return line._replace(number=self.space.entry(line.number, self.position))

    def _copy(self, event: Memcpy | Memset) -> None:
        """Apply a copy to or within the device, or a fill."""
        live = (a for a in self.trace.allocations if a.live_at(self.position))
        allocation = next((a for a in live if a.base <= event.address < a.end), None)
        if allocation is None:
            self.counts["trace.skipped_copies"] += 1
            return
        if not event.bytes:
            return
        parts, allocation_range = self.parts, self.space.ranges[allocation.index]
        covered = copies.covered_sectors(copies.written_range(event, allocation_range), allocation_range)
        copies.overwrite(parts.l2, covered, self.counts)
        parts.below.written(range(min(covered), max(covered) + 1))
        if parts.below.uses_sizes and self.any_started:
            before = [e for e in self.trace.events[: self.position] if isinstance(e, KernelLaunch)]
            launches = 1 + self.trace.kernels[before[-1].kernel].launch_index if before else 0
            copies.resize(parts.sizes, parts.l2.cache, allocation_range, covered, launches)
        machine = parts.numbers.machine
        if machine.l2.fill_on_memcpy and not parts.below.on_host(allocation_range.first):
            most = 2 * machine.l2.size // 128
            copies.leave_in_l2(parts.l2, covered, self.clock.now, most, parts.below.is_resident)
