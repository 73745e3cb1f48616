"""The L1 of an SM: the order in which lines of an instruction enter it, and the requests of each."""

from __future__ import annotations

from collections import Counter

from buddysim.trace import OP_ATOMIC, OP_LOAD, OP_STORE
from tests.reference.replay.l2.l2 import RefL2
from tests.reference.replay.memory.address_map import RefAddressMap
from tests.reference.replay.memory.histograms import RefLatencyHistograms
from tests.reference.replay.numbers import RefNumbers
from tests.reference.replay.operations import RefLine, RefOperation
from tests.reference.replay.primitives.caches import RefCache
from tests.reference.replay.primitives.ports import RefRing

ALL_SECTORS = 15
WORDS = 32


def tag_bank(entry: int) -> int:
    """Return the tag bank of a line: the exclusive or of all pairs of bits of its entry number."""
    bank = 0
    while entry:
        bank ^= entry & 3
        entry >>= 2
    return bank


def word_cycles(op: RefOperation) -> int:
    """Return the conflict cycles of the word banks for a load or store, 1 to 32."""
    sectors = sum(line.sectors.bit_count() for line in op.lines)
    whole = min(-(-sectors // 4), WORDS)
    return 1 + (whole - 1 + op.bank_words) % WORDS


class RefL1:
    """The L1 of one SM.

    Parameters
    ----------
    sm : number of the SM
    numbers, address_map : of the machine
    l2 : what misses and stores go to
    counts, times : what is counted
    """

    def __init__(
        self,
        sm: int,
        numbers: RefNumbers,
        address_map: RefAddressMap,
        l2: RefL2,
        counts: Counter[str],
        times: RefLatencyHistograms,
    ) -> None:
        self.sm, self.numbers, self.l2, self.counts, self.times = sm, numbers, l2, counts, times
        machine = numbers.machine
        self.enabled = machine.l1.enabled
        self.words = machine.l1.bank_conflicts == "tag_and_data"
        self.banked, self.max_merges = machine.l1.bank_conflicts == "sector", machine.l1.max_mshr_merges
        self.by_thread = machine.sm.split_conflicting_atomics
        self.cache = RefCache(machine.l1.ways, address_map.l1_set)
        self.load_mshrs, self.store_mshrs = RefRing(machine.l1.mshrs), RefRing(machine.l1.mshrs)
        self.free = 0

    def instruction(self, op: RefOperation, now: int, launch_index: int) -> tuple[int, int]:
        """Process the lines of an instruction that issues at `now`, in the kernel of a launch index.

        Returns
        -------
        when the last of them has arrived or is acknowledged, and when the warp's instruction counts as issued (ps)
        """
        if self.words:
            return self._by_words(op, now, launch_index)
        arrival = now
        banks = ALL_SECTORS
        for line in self._lines(op):
            conflicts = [sector for sector in range(4) if line.sectors & banks & 1 << sector]
            if self.banked and not conflicts:
                t = self.free - self.numbers.l1_line
                self.times.waits.l1_port.add(0)
                banks |= line.sectors
            else:
                t = max(now, self.free)
                self.times.waits.l1_port.add(t - now)
                self.free = t + self.numbers.l1_line
                banks = line.sectors >> conflicts[0] << conflicts[0] if self.banked else ALL_SECTORS
            arrival = max(arrival, self._line(op, line, t, launch_index))
        return arrival, max(now, self.free - self.numbers.l1_queue) if op.lines else now

    def _by_words(self, op: RefOperation, now: int, launch_index: int) -> tuple[int, int]:
        """Process an instruction as `instruction` does, on an L1 with banks of words and of tags."""
        cycle, arrival, cycles, of_bank = self.numbers.l1_line, now, 0, Counter[int]()
        for line in self._lines(op):
            cycle_of_bank = of_bank[tag_bank(line.number)]
            of_bank[tag_bank(line.number)] += 1
            if cycle_of_bank == cycles:
                cycles += 1
                self.free = max(self.free, now) + cycle
            t = self.free - (cycles - cycle_of_bank) * cycle
            self.times.waits.l1_port.add(t - now)
            arrival = max(arrival, self._line(op, line, t, launch_index))
        words = word_cycles(op) if op.lines and op.kind != OP_ATOMIC else 0
        if op.lines:
            self.counts["l1_conflict_cycles"] += max(words, cycles) - len(self._lines(op))
            more = words - cycles
            if more > 0:
                self.free += more * cycle
                if op.kind == OP_LOAD and self.enabled and not op.bypasses_l1:
                    arrival = max(arrival, self.free - cycle + self.numbers.l1_hit)
        return arrival, max(now, self.free - self.numbers.l1_queue) if op.lines else now

    def _lines(self, op: RefOperation) -> list[RefLine]:
        if op.kind != OP_ATOMIC or not self.by_thread:
            return op.lines
        again = [op.lines[number % len(op.lines)] for number in range(op.atomic_conflicts)]
        return op.lines + [line._replace(sectors=line.sectors & -line.sectors) for line in again]

    def _line(self, op: RefOperation, line: RefLine, t: int, launch_index: int) -> int:
        self.counts["line_accesses"] += 1
        self.counts["store_sectors" if op.kind == OP_STORE else "load_sectors"] += line.sectors.bit_count()
        if op.kind == OP_STORE:
            return self._store(line, t, launch_index)
        if op.kind == OP_LOAD and self.enabled and not op.bypasses_l1:
            return self._load(line, t, launch_index)
        return self.l2.load(self.sm, line.number, line.sectors, t, launch_index, atomic=op.kind == OP_ATOMIC)

    def _store(self, line: RefLine, t: int, launch_index: int) -> int:
        free = self.store_mshrs.take_earlier()
        self.times.waits.l1_store.add(max(0, free - t))
        self.free += max(0, free - t)
        acknowledged = self.l2.store(self.sm, line.number, line.sectors, line.whole, max(t, free), launch_index)
        self.store_mshrs.hold(acknowledged)
        return acknowledged

    def _load(self, line: RefLine, t: int, launch_index: int) -> int:
        self.counts["l1.line_accesses"] += 1
        self.counts["l1.sector_accesses"] += line.sectors.bit_count()
        entry = self.cache.find(line.number)
        if entry is None:
            self.cache.evict_if_full(line.number)
            entry = self.cache.add(line.number)
        else:
            self.counts["l1.line_hits"] += 1
        present, missing = line.sectors & entry.valid, line.sectors & ~entry.valid
        merged = entry.merged(present, t)
        if entry.merged(entry.valid, t) == 0:
            entry.merges = 0
        if merged and self.max_merges:
            if entry.merges == self.max_merges:
                self.free += entry.ready - t
                t, merged = entry.ready, 0
            else:
                entry.merges += 1
        self.counts["l1.sector_mshr_merges"] += merged.bit_count()
        self.counts["l1.sector_hits"] += (present & ~merged).bit_count()
        self.counts["l1.sector_misses"] += missing.bit_count()
        result = max(t + self.numbers.l1_hit, entry.ready if merged else 0)
        if not missing:
            return result
        free = self.load_mshrs.take_earlier()
        self.times.waits.l1_mshr.add(max(0, free - t))
        self.free += max(0, free - t)
        reply = self.l2.load(self.sm, line.number, missing, max(t, free), launch_index, atomic=False)
        self.load_mshrs.hold(reply)
        self.times.l1_miss.add(reply - t)
        entry.come(missing, reply, seen_from=t)
        return max(result, reply)
