"""A pseudo-channel of the `banked` model: its bus, and its queue of writes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import ceil

from buddysim.machine.parts.dram import DramConfig as DramKeys
from tests.reference.replay.dram.banks import RefActivationWindow, RefBank, RefDramTiming, RefRowAccess
from tests.reference.replay.memory.address_map import RefLocation
from tests.reference.replay.numbers import SECTOR_BYTES
from tests.reference.replay.primitives.ports import RefClock
from tests.reference.replay.primitives.reservation_table import RefReservationTable

EXTRA_ENTRIES = 3


@dataclass
class RefQueuedRow:
    """Queued writes to one row."""

    bank: int
    row: int
    arrival: int
    bursts: int


class RefBankedChannel:
    """A pseudo-channel: banks, a bus with a slot per burst, and a write queue.

    Parameters
    ----------
    keys : `dram` of the machine
    clock : the run's
    timing : of the machine
    counts : what is counted
    refresh_offset : from the refreshes of the first pseudo-channel to its own (ps)
    """

    def __init__(
        self, keys: DramKeys, clock: RefClock, timing: RefDramTiming, counts: Counter[str], refresh_offset: int
    ) -> None:
        self.keys, self.clock, self.timing, self.counts = keys, clock, timing, counts
        whole = 0 if timing.single_banks else timing.trefi
        self.bus = RefReservationTable(timing.burst, whole, timing.trfc, refresh_offset)
        slots = None
        if timing.interval > timing.burst:
            slots = RefReservationTable(timing.interval, whole, timing.trfc, refresh_offset)
        activations = RefActivationWindow(timing.interval, slots)
        self.banks = [RefBank(timing, activations, number, refresh_offset) for number in range(keys.banks)]
        self.latest_slot, self.turned, self.turning = -1, -2, 0
        self.alone: int | None = None
        self.queue: list[RefQueuedRow] = []
        self.queued = self.bytes = 0
        self.address_map = [0] * (keys.write_high_watermark + EXTRA_ENTRIES)
        self.next_taken = self.next_freed = 0

    def read(self, location: RefLocation, count: int, t: int) -> int:
        """Return the end of the data of a read that reaches the channel at `t` (ps)."""
        timing = self.timing
        bank, opened = self._open(location.bank, location.row, t)
        data = opened.at + timing.tcl
        slot = data // timing.burst
        if self.alone is not None and slot >= self.alone:
            slot = max(slot, self.turned + 1)
        first = slot = self._take(slot)
        for _ in range(count - 1):
            slot = self._take(slot + timing.ccd)
        done = max(data, first * timing.burst) + (slot - first + 1) * timing.burst
        if opened.word == "joined":
            bank.col += count * timing.ccd * timing.burst
        else:
            bank.col = done + timing.ccd * timing.burst - timing.burst - timing.tcl
        bank.ready = max(bank.ready, done + timing.trtp - timing.burst - timing.tcl)
        return done

    def _open(self, bank: int, row: int, t: int, earliest: int = 0) -> tuple[RefBank, RefRowAccess]:
        opened = self.banks[bank].open(row, t, earliest)
        self.counts["device.row_misses" if opened.word == "miss" else "device.row_hits"] += 1
        return self.banks[bank], opened

    def _take(self, slot: int) -> int:
        """Take a slot of the bus for a burst."""
        slot = self.bus.take(slot)
        self.latest_slot = max(self.latest_slot, slot)
        self.bytes += SECTOR_BYTES
        return slot

    # -- writes -------------------------------------------------------------------------------------------------------

    def write(self, location: RefLocation, count: int, t: int, before: int) -> int:
        """Return when the channel accepts bursts that leave the L2 at `t`; the way takes `before` (ps)."""
        taken = t
        for _ in range(count):
            taken = max(taken, self.address_map[self.next_taken])
            self.next_taken = (self.next_taken + 1) % len(self.address_map)
        at = taken + before
        for queued in self.queue:
            if (queued.bank, queued.row) == (location.bank, location.row):
                queued.bursts += count
                break
        else:
            self.queue.append(RefQueuedRow(location.bank, location.row, at, count))
        self.queued += count
        idle = self.latest_slot == self.turned
        if self.keys.write_drain == "interleaved":
            idle = idle or self.latest_slot < at // self.timing.burst
        if self.queued >= self.keys.write_high_watermark:
            self._drain(at, 0 if idle else self.keys.write_low_watermark, before)
        elif idle and self.queued >= self.keys.write_low_watermark:
            self._drain(at, 0, before)
        return taken

    def _drain(self, at: int, low: int, before: int) -> None:
        timing, bus = self.timing, self.bus
        first = start = at // timing.burst
        if self.latest_slot == self.turned:
            bus.taken -= set(range(self.turning, self.turned + 1))
            self.latest_slot = self.turning - 1
            goes_on = start <= self.latest_slot
        else:
            goes_on = False
            first = max(first, self.latest_slot + 1)
            turnaround = ceil(max(0, timing.trtw + timing.tcwl - timing.tcl - timing.burst) / timing.burst)
            start = max(start, self.latest_slot + 1 + turnaround)
        if self.keys.write_drain == "exclusive" and not goes_on:
            self.alone = first
        end = max(start, self.latest_slot + 1)
        while self.queued > low:
            end = max(end, self._write_row(self.queue.pop(0), start, before) + 1)
        self._reserve_turnaround(first, start)
        self.turning = end
        self._reserve_turnaround(end, end + ceil((timing.twtr + timing.tcl) / timing.burst))
        self.turned = self.latest_slot

    def _write_row(self, row: RefQueuedRow, start: int, before: int) -> int:
        """Write a row's bursts; return the slot of the last one."""
        timing = self.timing
        bank, opened = self._open(row.bank, row.row, row.arrival, earliest=self.clock.now)
        slot = max(start, (opened.at + timing.tcwl) // timing.burst)
        for _ in range(row.bursts):
            slot = self._take(slot)
            self.address_map[self.next_freed] = slot * timing.burst - before
            self.next_freed = (self.next_freed + 1) % len(self.address_map)
            slot += timing.ccd
        bank.col = max(bank.col, slot * timing.burst - timing.tcwl)
        slot -= timing.ccd
        bank.ready = max(bank.ready, (slot + 1) * timing.burst + timing.twr)
        self.queued -= row.bursts
        return slot

    def _reserve_turnaround(self, first: int, end: int) -> None:
        """Slots in which the bus is turned around."""
        turning = set(range(first, end))
        self.bus.taken |= turning
        self.latest_slot = max(self.latest_slot, *turning, -1)
