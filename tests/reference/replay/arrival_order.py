"""The order of arrival (`--exact-order`): what happens, in the order of time, between issue and reply.

Written from "Order of arrival" in docs/reference/replay-rules.md. The port of each L1 is a process that takes the lines
of its SM one after the other. A time that is not known yet is `UNKNOWN`, later than all others.
"""

from __future__ import annotations

import copy
import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from buddysim.trace import OP_ATOMIC, OP_BARRIER, OP_LOAD, OP_STORE
from tests.reference.replay.l1.l1 import RefL1, tag_bank, word_cycles
from tests.reference.replay.operations import RefLine, RefOperation
from tests.reference.replay.primitives.caches import RefCacheLine
from tests.reference.replay.run import RefRun
from tests.reference.replay.sm.schedulers import RefScheduler
from tests.reference.replay.sm.warps import RefPendingLoad, RefWarp

UNKNOWN = 1 << 100
FREED, ARRIVES, ENTERS, RETRIES = range(4)


@dataclass(eq=False)
class RefInFlight:
    """An instruction whose reply is not known.

    `work` is what its port did before it; it arrives at least `at_least` after its first line could enter.
    """

    warp: RefArrivalWarp
    op: RefOperation
    launch_index: int
    issued: int
    work: int
    at_least: int
    left: int
    arrival: int = 0
    load: RefPendingLoad | None = None


@dataclass(eq=False)
class RefQueuedLine:
    """A line of an instruction; `awaits` are the misses whose replies it needs."""

    of: RefInFlight
    line: RefLine
    work: int
    is_last: bool
    arrival: int = 0
    entered: int = 0
    missing: int = 0
    own: RefMiss | None = None
    awaits: set[RefMiss] = field(default_factory=set)


@dataclass(eq=False)
class RefMiss:
    """A request of the L1 without a reply: `entry` is its line while the L1 has it."""

    entry: RefCacheLine
    waiting: list[RefQueuedLine] = field(default_factory=list)


class RefArrivalWarp(RefWarp):
    """A warp that goes on once the time is known at which it is ready.

    Attributes
    ----------
    flying : instructions without a reply that its end waits for
    blocked : it waits for an unknown time
    retry_at : when the load that arrives first is known to do so, where it waits for that
    run : the run that it belongs to
    """

    flying = 0
    blocked = False
    retry_at: int | None = None
    run: RefArrivalRun | None = None

    def next(self) -> None:
        """Advance, if the time at which the warp would be ready is known."""
        trial = copy.copy(self)
        trial.pending, trial.retry_at = [copy.copy(load) for load in self.pending], None
        RefWarp.next(trial)
        assert trial.ready is not None
        self.blocked = trial.ready >= UNKNOWN or (trial.op is None and self.flying > 0) or trial.retry_at is not None
        if not self.blocked:
            super().next()
            return
        self.ready = UNKNOWN
        if trial.retry_at is not None and self.run is not None:
            self.run.schedule(trial.retry_at, RETRIES, 0, lambda: self.retry())

    def retry(self) -> None:
        """Advance if it was blocked and is no longer."""
        if self.blocked:
            self.next()

    def _free_an_entry(self) -> None:
        """Wait for the load that arrives first, which is known once that time has come."""
        first = min(load.arrival for load in self.pending)
        unknown = any(load.arrival >= UNKNOWN for load in self.pending)
        if unknown and self.run is not None and self.run.clock.now < first < UNKNOWN:
            self.retry_at = first
        super()._free_an_entry()


class RefArrivalL1:
    """The L1 of an SM, with the lines that wait for it.

    Parameters
    ----------
    own : the L1 of the order of issue, of which it has lines and rules
    run : what keeps the time
    """

    def __init__(self, own: RefL1, run: RefArrivalRun) -> None:
        self.own, self.run, self.numbers = own, run, own.numbers
        self.queue: list[RefQueuedLine] = []
        self.loads = self.stores = 0
        self.mshrs = own.numbers.machine.l1.mshrs
        self.granted = self.granted_work = self.pushed = 0
        self.stopped: list[tuple[RefScheduler, RefArrivalWarp, int, int]] = []
        self.misses: dict[int, tuple[RefCacheLine, set[RefMiss], int]] = {}
        self.due: int | None = None
        self.port = self._port()

    # -- issue --------------------------------------------------------------------------------------------------------

    def issue(self, scheduler: RefScheduler, warp: RefArrivalWarp, now: int) -> None:
        """Queue the lines of a warp's instruction."""
        op = warp.op
        assert op is not None
        lines = self.own._lines(op)
        offsets, total, at_least = self._at_idle_port(op, lines)
        flying = RefInFlight(warp, op, warp.block.owner.kernel.launch_index, now, self.pushed, at_least, len(lines))
        in_order = sorted(range(len(lines)), key=lambda i: offsets[i])
        for position, i in enumerate(in_order):
            work = self.pushed + offsets[i]
            self.queue.append(RefQueuedLine(flying, lines[i], work, position == len(lines) - 1))
        self.pushed += total
        self.run.begin(flying)
        self.stopped.append((scheduler, warp, now, self.pushed - self.numbers.l1_queue))
        if not lines:
            self.run.known(flying)
        self.go_on()
        self._resume()

    def _at_idle_port(self, op: RefOperation, lines: list[RefLine]) -> tuple[list[int], int, int]:
        """Return when each line enters, when the port is free again, and how early the instruction can arrive."""
        line_time, hit = self.numbers.l1_line, self.numbers.l1_hit
        if self.own.words:
            seen: list[int] = [0, 0, 0, 0]
            offsets = []
            for line in lines:
                bank = tag_bank(line.number)
                offsets.append(seen[bank] * line_time)
                seen[bank] += 1
            cycles, words = max(seen), word_cycles(op) if lines and op.kind != OP_ATOMIC else 0
            if lines:
                self.run.counts["l1_conflict_cycles"] += max(words, cycles) - len(lines)
            total = max(words, cycles) * line_time
            limited = words > cycles and self._in_l1(op)
            return offsets, total, total - line_time + hit if limited else 0
        if not self.own.banked:
            return [i * line_time for i in range(len(lines))], len(lines) * line_time, 0
        offsets, cycle, taken = [], -1, 15
        for line in lines:
            overlap = line.sectors & taken
            if overlap:
                cycle += 1
                lowest = (overlap & -overlap).bit_length() - 1
                taken = line.sectors >> lowest << lowest
            else:
                taken |= line.sectors
            offsets.append(cycle * line_time)
        return offsets, (cycle + 1) * line_time, 0

    def _in_l1(self, op: RefOperation) -> bool:
        return op.kind == OP_LOAD and self.own.enabled and not op.bypasses_l1

    # -- the port -----------------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Let the port do what it can now."""
        self.due = None
        next(self.port)

    def at(self, t: int) -> None:
        """Let the port go on at a time."""
        if self.due != t:
            self.due = t
            self.run.schedule(t, ENTERS, self.own.sm, lambda: self.go_on() if self.due == t else None)

    def _port(self) -> Iterator[None]:
        while True:
            while not self.queue:
                yield
            line = self.queue[0]
            enters = max(line.of.issued, self.granted + line.work - self.granted_work)
            while self.run.clock.now < enters:
                self.at(enters)
                yield
            line.entered = enters
            self.run.parts.times.waits.l1_port.add(enters - line.of.issued)
            self._count(line)
            if self._in_l1(line.of.op):
                yield from self._look_up(line)
                yield from self._take("loads", line if line.missing else None)
            elif line.of.op.kind == OP_STORE:
                yield from self._take("stores", line)
            self.queue.pop(0)
            now = self.run.clock.now
            self.granted, self.granted_work = now, line.work
            if line.is_last and line.of.at_least:
                line.of.arrival = max(line.of.arrival, now - (line.work - line.of.work) + line.of.at_least)
            self._leave(line)
            self._resume()

    def _count(self, line: RefQueuedLine) -> None:
        counts, of_load = self.run.counts, line.of.op.kind != OP_STORE
        counts["line_accesses"] += 1
        counts["load_sectors" if of_load else "store_sectors"] += line.line.sectors.bit_count()
        if self._in_l1(line.of.op):
            counts["l1.line_accesses"] += 1
            counts["l1.sector_accesses"] += line.line.sectors.bit_count()

    def _take(self, what: str, line: RefQueuedLine | None) -> Iterator[None]:
        if line is None:
            return
        waits = self.run.parts.times.waits
        while getattr(self, what) == self.mshrs:
            yield
        setattr(self, what, getattr(self, what) + 1)
        (waits.l1_mshr if what == "loads" else waits.l1_store).add(self.run.clock.now - line.entered)

    def _look_up(self, line: RefQueuedLine) -> Iterator[None]:
        own, number, sectors, counts = self.own, line.line.number, line.line.sectors, self.run.counts
        entry = own.cache.find(number)
        counts["l1.line_hits"] += entry is not None
        if entry is not None and self._at_limit(entry, sectors):
            while entry.ready > self.run.clock.now:
                if entry.ready < UNKNOWN:
                    self.at(entry.ready)
                yield
            line.entered = self.run.clock.now
            entry.merges = 0
            entry = own.cache.find(number)
        now = line.entered
        if entry is None:
            own.cache.evict_if_full(number)
            entry = own.cache.add(number)
        present, line.missing = sectors & entry.valid, sectors & ~entry.valid
        merged = entry.merged(present, now)
        line.arrival = now + self.numbers.l1_hit
        known, open_misses = self._open(entry)
        if merged:
            line.awaits = set(open_misses)
            line.arrival = max(line.arrival, known if entry.ready >= UNKNOWN else entry.ready)
        counts["l1.sector_mshr_merges"] += merged.bit_count()
        counts["l1.sector_hits"] += (present & ~merged).bit_count()
        counts["l1.sector_misses"] += line.missing.bit_count()
        if line.missing:
            if entry.ready < UNKNOWN:
                known = entry.ready if entry.pending and entry.ready > now else 0
                self.misses[id(entry)] = entry, set(), known
            entry.come(line.missing, UNKNOWN, seen_from=now)
            line.own = RefMiss(entry)
            line.awaits.add(line.own)
            self.misses[id(entry)][1].add(line.own)
        for miss in line.awaits:
            miss.waiting.append(line)

    def _at_limit(self, entry: RefCacheLine, sectors: int) -> bool:
        now, most = self.run.clock.now, self.own.max_merges
        if not most:
            return False
        if not entry.merged(entry.valid, now):
            entry.merges = 0
        if not entry.merged(entry.valid & sectors, now):
            return False
        entry.merges += 1
        return entry.merges > most

    def _open(self, entry: RefCacheLine) -> tuple[int, set[RefMiss]]:
        """Return the latest known arrival of a line's misses in flight, and those without a reply."""
        if entry.ready < UNKNOWN:
            return 0, set()
        _, misses, known = self.misses[id(entry)]
        return known, misses

    def _leave(self, line: RefQueuedLine) -> None:
        in_l1, sectors = self._in_l1(line.of.op), line.missing or line.line.sectors
        if in_l1 and not line.missing:
            if not line.awaits:
                self.run.line_known(line, line.arrival)
            return
        n = sectors.bit_count()
        requests = n if line.of.op.kind == OP_STORE else 1
        t = self.own.l2.send(self.own.sm, line.line.number, self.run.clock.now, n, requests)
        self.run.schedule(t, ARRIVES, next(self.run.sent), lambda: self._arrived(line, sectors))

    # -- replies ------------------------------------------------------------------------------------------------------

    def _arrived(self, line: RefQueuedLine, sectors: int) -> None:
        l2, sm, entry, op, now = self.own.l2, self.own.sm, line.line.number, line.of.op, self.run.clock.now
        if op.kind == OP_STORE:
            reply = l2.store_at_slice(sm, entry, sectors, line.line.whole, now, line.of.launch_index)
            self.run.schedule(reply, FREED, self.own.sm, lambda: self._freed("stores"))
            self.run.line_known(line, reply)
            return
        reply = l2.load_at_slice(sm, entry, sectors, now, line.of.launch_index, atomic=op.kind == OP_ATOMIC)
        if line.own is None:
            self.run.line_known(line, reply)
            return
        self.run.parts.times.l1_miss.add(reply - line.entered)
        self.run.schedule(reply, FREED, self.own.sm, lambda: self._freed("loads"))
        self._replied(line.own, reply)

    def _freed(self, what: str) -> None:
        setattr(self, what, getattr(self, what) - 1)
        self.at(self.run.clock.now)

    def _replied(self, miss: RefMiss, reply: int) -> None:
        entry, misses, known = self.misses[id(miss.entry)]
        misses.remove(miss)
        known = max(known, reply)
        self.misses[id(entry)] = entry, misses, known
        if not misses:
            del self.misses[id(entry)]
            entry.ready = known
            self.at(known) if self.queue and self.due is None else None
        for line in miss.waiting:
            line.awaits.remove(miss)
            line.arrival = max(line.arrival, reply)
            if not line.awaits:
                self.run.line_known(line, line.arrival)

    def _resume(self) -> None:
        """Let schedulers go on whose instructions count as issued before the next line enters."""
        until = self.queue[0].work if self.queue else self.pushed
        while self.stopped and self.stopped[0][3] <= until:
            scheduler, warp, now, work = self.stopped.pop(0)
            issued = max(now, self.granted + work - self.granted_work)
            scheduler.next_issue = max(now + self.numbers.cycle, issued)
            warp.shift = issued - warp.clock
            warp.next()


class RefArrivalRun(RefRun):
    """A run in the order of arrival."""

    def __init__(self, *args: Any) -> None:
        parts = args[-1]
        self.parts, self.clock, self.counts = parts, parts.clock, parts.counts
        self.events: list[tuple[int, int, int, int, Callable[[], None]]] = []
        self.sent, self.pushed = count(), count()
        self.stores: Counter[int] = Counter()  # without an acknowledgement, by the id of their kernel
        self.last_warps: dict[int, RefWarp] = {}  # that wait for these
        self.l1s = [RefArrivalL1(l1, self) for l1 in parts.l1s]
        for l1 in self.l1s:
            next(l1.port)
        for sm in parts.sms:
            sm.make_warp = self._make_warp
        super().__init__(*args)

    def _make_warp(self, *args: Any) -> RefArrivalWarp:
        warp = RefArrivalWarp(*args)
        warp.run = self
        return warp

    def schedule(self, t: int, kind: int, rank: int, action: Callable[[], None]) -> None:
        """Let something happen at a time."""
        heapq.heappush(self.events, (t, kind, rank, next(self.pushed), action))

    def _step(self) -> bool:
        slots = [scheduler.next_slot for own in self.parts.schedulers for scheduler in own]
        slot = min((at for at in slots if at is not None), default=UNKNOWN)
        starts = [kernel.starts for kernel in self.running if not kernel.started]
        starts += [one.due for one in self.copies.running if one.due is not None]
        start = min(starts, default=UNKNOWN)
        if self.events and self.events[0][0] <= slot and self.events[0][0] < start:
            now = self.clock.now
            self.clock.now, _, _, _, action = heapq.heappop(self.events)
            action()
            if not self.running:
                self.clock.now = now  # a reply that nobody waits for ends nothing
            return True
        return (slot < UNKNOWN or start < UNKNOWN) and super()._step()

    def _issue(self, sm: int, number: int) -> None:
        scheduler, now = self.parts.schedulers[sm][number], self.clock.now
        warp = scheduler.choose(now)
        if warp is None:
            return
        op = warp.op
        if op is None:
            until = self._end_of_stores(warp)
            if until > now:
                warp.ready = until
                return
            scheduler.ended(warp)
            self._warp_ended(sm, warp)
        elif op.kind == OP_BARRIER:
            scheduler.issued(warp, now, now)
            warp.issued(op, now, now)
            self.parts.sms[sm].at_barrier(warp, now)
        else:
            self.counts["memory_instructions"] += 1
            scheduler.issued(warp, now, UNKNOWN)
            warp.ready = UNKNOWN
            assert isinstance(warp, RefArrivalWarp)
            self.l1s[sm].issue(scheduler, warp, now)

    def _end_of_stores(self, warp: RefWarp) -> int:
        kernel, end = warp.block.owner, warp.block.end_of_stores()
        is_last = warp.block.left == 1 and not kernel.waiting and kernel.running_blocks == 1
        if not is_last or not self.stores[id(kernel)]:
            return end
        self.last_warps[id(kernel)] = warp
        return UNKNOWN

    def begin(self, flying: RefInFlight) -> None:
        """Note an instruction in flight."""
        flying.load = flying.warp.expect(flying.op, UNKNOWN)
        if self._outlives(flying):
            self.stores[id(flying.warp.block.owner)] += 1
        else:
            flying.warp.flying += 1

    def _outlives(self, flying: RefInFlight) -> bool:
        return flying.op.kind == OP_STORE and not self.parts.numbers.machine.sm.exit_waits_for_stores

    def line_known(self, line: RefQueuedLine, arrival: int) -> None:
        """Note when a line arrives."""
        line.of.arrival = max(line.of.arrival, arrival)
        line.of.left -= 1
        if not line.of.left:
            self.known(line.of)

    def known(self, flying: RefInFlight) -> None:
        """Tell a warp when its instruction arrives."""
        warp, kernel = flying.warp, flying.warp.block.owner
        if flying.load:
            flying.load.arrival = flying.arrival
        if self._outlives(flying):
            kernel.stored = max(kernel.stored, flying.arrival)
            self.stores[id(kernel)] -= 1
            if not self.stores[id(kernel)] and id(kernel) in self.last_warps:
                self.last_warps.pop(id(kernel)).ready = kernel.stored
            return
        warp.last = max(warp.last, flying.arrival)
        warp.flying -= 1
        warp.retry()
