"""Crossbar and L2: requests of SMs through a slice."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from tests.reference.replay.memory.address_map import RefAddressMap
from tests.reference.replay.memory.histograms import RefLatencyHistograms
from tests.reference.replay.numbers import FINE, RefNumbers
from tests.reference.replay.primitives.caches import RefCache, RefCacheLine
from tests.reference.replay.primitives.ports import RefClock, RefPort, RefRing
from tests.reference.replay.primitives.reservation_table import RefReservationTable


class RefMemoryPathProtocol(Protocol):
    """What the L2 needs of a replay scheme."""

    def arrive(self, entry: int, t: int) -> int:
        """Return when an access that has passed its slice's port at `t` looks for its line (ps)."""

    def fill(self, entry: int, requested: int, besides: int, t: int) -> tuple[int, int]:
        """Fetch sectors, and extra ones if uncompressed; return the sectors that the L2 then has, and the time (ps)."""

    def write_back(self, entry: int, line: RefCacheLine, t: int) -> int:
        """Write a dirty line back; return when its way is free (ps)."""

    def count_write_back(self, entry: int) -> None:
        """Count a write-back of an entry for its allocation."""

    def dirtied(self, entry: int, line: RefCacheLine, launch_index: int) -> None:
        """Note that the kernel of a launch index wrote a line."""


def slot_from(reservations: RefReservationTable, t: int) -> int:
    """Take the first free slot from `t` on; return its start, or `t` if that is later."""
    return max(t, reservations.length * reservations.take(t // reservations.length))


class RefL2:
    """All slices, with the ports of the crossbar.

    Parameters
    ----------
    numbers, address_map : of the machine
    clock : the run's
    below : the replay scheme
    counts, times : what is counted
    """

    def __init__(
        self,
        numbers: RefNumbers,
        address_map: RefAddressMap,
        clock: RefClock,
        below: RefMemoryPathProtocol,
        counts: Counter[str],
        times: RefLatencyHistograms,
    ) -> None:
        machine = numbers.machine
        self.numbers, self.address_map, self.below, self.counts, self.times = numbers, address_map, below, counts, times
        waits = times.waits
        self.request_ports = [RefPort(waits.request_port) for _ in range(machine.sm.count)]
        self.reply_ports = [RefPort(waits.reply_port) for _ in range(machine.sm.count)]
        self.slice_ports = [RefPort(waits.slice_port) for _ in range(machine.l2.slices)]
        self.atomic_units = [RefPort() for _ in range(machine.l2.slices)]
        self.queues = machine.crossbar.input_queued
        slices, sms = range(machine.l2.slices), range(machine.sm.count)
        self.queue_free = [0 for _ in sms]
        self.interleaved = machine.crossbar.interleave_requesters
        self.runs = [(-1, 1) for _ in sms]
        self.booked: list[dict[int, int]] = [{} for _ in slices]
        self.slice_arrivals = [RefReservationTable(numbers.slice_sector, 0, 0) for _ in slices]
        self.slice_departures = [RefReservationTable(numbers.slice_sector, 0, 0) for _ in slices]
        self.sm_arrivals = [RefReservationTable(numbers.sm_reply_sector, 0, 0) for _ in sms]
        self.atomic_cost = FINE * machine.ps(machine.l2.atomic_interval)
        self.rewrite_cost = FINE * machine.ps(machine.l2.dirty_store_interval)
        self.max_dirty = machine.l2.max_dirty * machine.l2.ways * 4 // machine.l2.size
        self.mshrs = [RefRing(machine.l2.mshrs) for _ in range(machine.l2.slices)]
        size = machine.l2.writeback_buffer
        self.writeback_slots = [RefRing(size) for _ in range(machine.l2.slices)] if size else []
        self.cache = RefCache(machine.l2.ways, lambda entry: (address_map.slice_of(entry), address_map.l2_set(entry)))
        self.far = machine.ps(machine.l2.partition_latency)
        self.slices = machine.l2.slices // machine.l2.partitions
        self.sms = -(-machine.sm.count // machine.l2.partitions)
        self.copies = [self._copies(partition) for partition in range(machine.l2.partitions)]

    def _copies(self, partition: int) -> RefCache:
        """Return a partition's replicas, which share the slices and sets with its own lines."""
        copies = RefCache(
            self.cache.ways, lambda entry: (self._slice_in(partition, entry), self.address_map.l2_set(entry))
        )
        copies.sets = self.cache.sets
        return copies

    def _slice_in(self, partition: int, entry: int) -> int:
        """Return the slice of a partition that holds an entry or its replica."""
        return partition * self.slices + self.address_map.slice_of(entry) % self.slices

    def _home(self, entry: int) -> int:
        """Return the partition of an entry's home."""
        return self.address_map.slice_of(entry) // self.slices

    def _way_there(self, sm: int, entry: int) -> int:
        """Return the extra time of a request to the entry's home and back (ps)."""
        return 0 if sm // self.sms == self._home(entry) else self.far

    def drop_copies(self, entry: int, sectors: int) -> None:
        """Drop sectors from the replicas in all partitions but the home."""
        for partition, copies in enumerate(self.copies):
            copy = copies.peek(entry) if partition != self._home(entry) else None
            if copy is None:
                continue
            copy.valid &= ~sectors
            copy.pending &= ~sectors
            if not copy.valid:
                copies.drop(entry)

    def load(self, sm: int, entry: int, requested: int, t: int, launch_index: int, *, atomic: bool) -> int:
        """Process a load or atomic of an SM; return when its reply has arrived (ps)."""
        t = self.send(sm, entry, t, requested.bit_count(), requests=1)
        return self.load_at_slice(sm, entry, requested, t, launch_index, atomic=atomic)

    def load_at_slice(self, sm: int, entry: int, requested: int, t: int, launch_index: int, *, atomic: bool) -> int:
        """Process a load or atomic whose request reaches the slice at `t`; return when its reply has arrived (ps)."""
        count, far = requested.bit_count(), self._way_there(sm, entry)
        self.counts["l2.read_sectors"] += count
        if atomic:
            self.drop_copies(entry, requested)
        if len(self.copies) == 1:
            t = self._pass_slice(entry, t, count)
            data = self._load_at_home(entry, requested, t, launch_index, atomic=atomic)
            return self._back(sm, entry, data, count)
        if not atomic and sm // self.sms != self._home(entry):
            data = self._load_through_copy(sm // self.sms, entry, requested, t, launch_index)
        else:
            t = self._pass_slice(entry, t + far // 2, count)
            data = self._load_at_home(entry, requested, t, launch_index, atomic=atomic) + far - far // 2
        return self._back(sm, entry, data, count)

    def _back(self, sm: int, entry: int, data: int, count: int) -> int:
        """Return when the sectors of a reply have arrived that leaves its slice at `data` (ps)."""
        if self.queues:
            left = self._reply(sm, entry, data, count)
            self.times.waits.reply_port.add(max(0, left - (count - 1) * self.numbers.reply_sector - data))
            return left + self.numbers.reply_half + (count - 1) * self._behind_replies()
        reply = self.reply_ports[sm].request(data + self.numbers.reply_half, count * self.numbers.reply_cost)
        return reply + (count - 1) * self.numbers.reply_sector

    def _load_through_copy(self, partition: int, entry: int, requested: int, t: int, launch_index: int) -> int:
        """Process a load in a partition that is not the line's home; return when it has the last sector (ps)."""
        slice_index, copies = self._slice_in(partition, entry), self.copies[partition]
        t = self.slice_ports[slice_index].request(t, requested.bit_count() * self.numbers.slice_cost)
        t = self.below.arrive(entry, t)
        line = copies.find(entry)
        if line is None:
            t = self.evict_if_full(entry, t, copies)
            line = copies.add(entry)
        present, missing = requested & line.valid, requested & ~line.valid
        merged = line.merged(present, t)
        self.counts["l2.sector_mshr_merges"] += merged.bit_count()
        self.counts["l2.read_sector_hits"] += (present & ~merged).bit_count()
        data = max(t, line.ready if merged else 0)
        if not missing:
            self.counts["l2.line_accesses"] += 1
            self.counts["l2.line_hits"] += 1
            return data
        ring = self.mshrs[slice_index]
        begin = max(t, ring.take()) + self.far // 2
        home = self.slice_ports[self.address_map.slice_of(entry)]
        begin = home.request(begin, missing.bit_count() * self.numbers.slice_cost)
        done = self._load_at_home(entry, missing, begin, launch_index, atomic=False) + self.far - self.far // 2
        ring.hold(done)
        line.come(missing, done, seen_from=t)
        return max(data, done)

    def _load_at_home(self, entry: int, requested: int, t: int, launch_index: int, *, atomic: bool) -> int:
        """Process a load or atomic at its home slice from `t` on; return when the slice has the last sector (ps)."""
        count, counts = requested.bit_count(), self.counts
        line, t = self._way(entry, t)
        present, missing = requested & line.valid, requested & ~line.valid
        merged = line.merged(present, t)
        counts["l2.sector_mshr_merges"] += merged.bit_count()
        counts["l2.read_sector_hits"] += (present & ~merged).bit_count()
        data = max(t, line.ready if merged else 0)
        if missing:
            counts["l2.read_sector_misses"] += missing.bit_count()
            data = max(data, self._fetch(entry, line, missing, t))
        if atomic:
            data = self.atomic_units[self.address_map.slice_of(entry)].request(data, count * self.atomic_cost)
            data += count * self.atomic_cost // FINE
            self._make_dirty(entry, line, requested, launch_index)
            self._clean(entry, t)
        return data

    def store(self, sm: int, entry: int, touched: int, whole: int, t: int, launch_index: int) -> int:
        """Process a store of an SM; return when it is acknowledged (ps)."""
        t = self.send(sm, entry, t, touched.bit_count(), requests=touched.bit_count())
        return self.store_at_slice(sm, entry, touched, whole, t, launch_index)

    def store_at_slice(self, sm: int, entry: int, touched: int, whole: int, t: int, launch_index: int) -> int:
        """Process a store whose request reaches the slice at `t`; return when it is acknowledged (ps)."""
        count, far = touched.bit_count(), self._way_there(sm, entry)
        self.drop_copies(entry, touched)
        t = self._pass_slice(entry, t + far // 2, count)
        line, t = self._way(entry, t)
        rewritten = (touched & line.dirty).bit_count()
        if rewritten and self.rewrite_cost:
            t = self.slice_ports[self.address_map.slice_of(entry)].request(t, rewritten * self.rewrite_cost)
            t += rewritten * self.rewrite_cost // FINE
        self.counts["l2.write_sectors"] += count
        self.counts["l2.write_sector_hits"] += (touched & (line.valid | line.dirty)).bit_count()
        self._make_dirty(entry, line, touched, launch_index)
        line.valid |= whole
        t = self._clean(entry, t)
        apart = max(self.numbers.request_sector, self.numbers.slice_sector)
        if self.queues:
            t, apart = self._reply(sm, entry, t, count), self._behind_replies()
        return t + (count - 1) * apart + self.numbers.acknowledgement_half + far - far // 2

    def _behind_replies(self) -> int:
        """Return by how much a line's requests are further apart than its replies (ps)."""
        return max(0, self.numbers.request_sector - self.numbers.reply_sector)

    def between_slices(self, sender: int, receiver: int, latency: int, t: int) -> int:
        """Send a sector from one slice to another at `t`; return its start there (ps)."""
        if self.queues:
            t = slot_from(self.slice_departures[sender], t)
            return slot_from(self.slice_arrivals[receiver], t) + latency
        return self.slice_ports[receiver].request(t + latency, self.numbers.slice_cost)

    def evict(self, entry: int) -> None:
        """Drop the line of an evicted page; its dirty sectors count as written back."""
        self.drop_copies(entry, 15)
        line = self.cache.drop(entry)
        if line is not None and line.dirty:
            self.counts["l2.writebacks"] += 1
            self.counts["l2.writeback_sectors"] += line.dirty.bit_count()
            self.counts["um.evicted_dirty_sectors"] += line.dirty.bit_count()
            self.below.count_write_back(entry)

    def _pass_slice(self, entry: int, t: int, count: int) -> int:
        """Return when a request looks for its line; with input queues it has passed the slice already."""
        if not self.queues:
            t = self.slice_ports[self.address_map.slice_of(entry)].request(t, count * self.numbers.slice_cost)
        return self.below.arrive(entry, t)

    def send(self, sm: int, entry: int, t: int, count: int, requests: int) -> int:
        """Send a request for sectors of an entry; return when it reaches the slice (ps)."""
        if self.queues:
            return self._leave_queue(sm, entry, t, count) + self.numbers.request_half
        return self.request_ports[sm].request(t, requests * self.numbers.request_cost) + self.numbers.request_half

    def _leave_queue(self, sm: int, entry: int, t: int, count: int) -> int:
        """Send sectors behind the SM's earlier requests; return the last start, less the time of the others (ps)."""
        apart, slice_index = self.numbers.request_sector, self.address_map.slice_of(entry)
        for _ in range(count):
            begin = max(t, self.queue_free[sm])
            if self.interleaved:
                begin = self._leave_time(sm, slice_index, begin)
            left = slot_from(self.slice_arrivals[slice_index], begin)
            self.queue_free[sm] = left + apart
            self.booked[slice_index][sm] = left + self.numbers.slice_sector
        left = max(t, left - (count - 1) * max(apart, self.numbers.slice_sector))
        self.times.waits.request_port.add(left - t)
        return left

    def _leave_time(self, sm: int, slice_index: int, begin: int) -> int:
        """Return when the SM's request may leave for a slice: with interleaving, in every other slot."""
        run, slots = self.runs[sm]
        following = self.booked[slice_index].get(sm, 0) + (slots - 1) * self.numbers.slice_sector
        if run == slice_index and following >= begin:
            return following
        others = (until for other, until in self.booked[slice_index].items() if other != sm)
        self.runs[sm] = (slice_index, 2 if max(others, default=0) > begin else 1)
        return begin

    def _reply(self, sm: int, entry: int, t: int, count: int) -> int:
        left = t - self.numbers.reply_sector
        for _ in range(count):
            left += self.numbers.reply_sector
            left = slot_from(self.slice_departures[self.address_map.slice_of(entry)], left)
            left = slot_from(self.sm_arrivals[sm], left)
        return left

    def _make_dirty(self, entry: int, line: RefCacheLine, sectors: int, launch_index: int) -> None:
        self.below.dirtied(entry, line, launch_index)
        self.counts["l2.sectors_made_dirty"] += (sectors & ~line.dirty).bit_count()
        line.dirty |= sectors

    def _clean(self, entry: int, t: int) -> int:
        """Write back the set's oldest dirty lines beyond the limit; return when the last is accepted (ps)."""
        if not self.max_dirty:
            return t
        lines = self.cache.set_for(entry)
        for oldest, line in lines.items():
            if sum(one.dirty.bit_count() for one in lines.values()) <= self.max_dirty:
                break
            if line.dirty:
                self.counts["l2.writebacks"] += 1
                self.counts["l2.writeback_sectors"] += line.dirty.bit_count()
                t = self.take_back(oldest, line, t)
                line.dirty = 0
        return t

    def _way(self, entry: int, t: int) -> tuple[RefCacheLine, int]:
        """Return the entry's line, and the time from which it can be used."""
        self.counts["l2.line_accesses"] += 1
        line = self.cache.find(entry)
        if line is not None:
            self.counts["l2.line_hits"] += 1
            return line, t
        t = self.evict_if_full(entry, t)
        return self.cache.add(entry), t

    def evict_if_full(self, entry: int, t: int, where: RefCache | None = None) -> int:
        """Evict the line that a new line or replica replaces; return when its way is free (ps)."""
        victim = (where or self.cache).evict_if_full(entry)
        if victim is None or not victim[1].dirty:
            return t
        self.counts["l2.writebacks"] += 1
        self.counts["l2.writeback_sectors"] += victim[1].dirty.bit_count()
        return self.take_back(*victim, t)

    def take_back(self, entry: int, line: RefCacheLine, t: int) -> int:
        """Return when the way of a line that is written back is free (ps)."""
        if not self.writeback_slots:
            return self.below.write_back(entry, line, t)
        slots = self.writeback_slots[self.address_map.slice_of(entry)]
        t = max(t, slots.take())
        slots.hold(self.below.write_back(entry, line, t))
        return t

    def _fetch(self, entry: int, line: RefCacheLine, missing: int, t: int) -> int:
        ring = self.mshrs[self.address_map.slice_of(entry)]
        free = ring.take()
        self.counts["l2.fills"] += 1
        besides = 0
        if self.numbers.machine.l2.fetch_granularity == 64:
            pairs = sum(3 << first for first in (0, 2) if missing >> first & 3)
            besides = pairs & ~missing & ~line.valid
        filled, done = self.below.fill(entry, missing, besides, max(t, free))
        ring.hold(done)
        self.times.l2_miss.add(done - t)
        self.times.waits.l2_mshr.add(max(0, free - t))
        new = filled & ~line.valid
        self.counts["l2.fill_sectors"] += new.bit_count()
        line.come(new, done, seen_from=t)
        return done
