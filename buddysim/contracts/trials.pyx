"""Trials of policies: single parts of the machine under them, without the rest."""
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcmp

from buddysim.replay.dram.dram cimport (
    DeviceLocation, Dram, dram_configure, dram_idle_ps, dram_location, dram_read, dram_read_dry_run, dram_write,
)
from buddysim.replay.l1.l1 cimport L1s, l1_enter, l1s_init
from buddysim.replay.link.link cimport READ_DATA, READ_REQUEST, WRITE_ACK, WRITE_DATA, Link, link_bytes, link_init
from buddysim.replay.memory.memory cimport MemorySystem, memory_init
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.arena cimport Arena, arena_free, arena_zeroed
from buddysim.replay.primitives.cache cimport CacheSet, cache_set
from buddysim.replay.primitives.horizon cimport Horizon, horizon_free, horizon_init
from buddysim.replay.primitives.kinds cimport DEMAND
from buddysim.replay.primitives.set_search cimport SET_EMPTY
from buddysim.replay.schemes.buddy.metadata_cache cimport BuddyState, MetadataCache, look_up_in, metadata_init, metadata_set
from buddysim.replay.schemes.buddy.prefetcher.base cimport MetadataPrefetcherBase
from buddysim.replay.sm.issue_order cimport NO_ISSUER, Scheduler, scheduler_add, scheduler_init, scheduler_pick
from buddysim.replay.sm.scheduler.base cimport WarpSchedulerBase
from buddysim.replay.sm.stream cimport StreamOp


cdef class DramTrial:
    """Device memory of a machine, to which requests are made one by one.

    Parameters
    ----------
    numbers : the machine (`parameters.engine_numbers`)
    policies : an instance of each policy, by kind
    """

    cdef Arena arena
    cdef Horizon horizon
    cdef Dram dram
    cdef dict policies

    def __cinit__(self, dict numbers, dict policies):
        self.policies = policies
        horizon_init(&self.horizon, numbers["horizon_pages"])
        dram_configure(&self.arena, &self.dram, &self.horizon, numbers, policies)

    def __dealloc__(self):
        horizon_free(&self.horizon)
        arena_free(&self.arena)

    def read(self, uint32_t bank, uint32_t row, int bursts, int64_t t):
        """Reads; returns the arrival that a dry run gives, that of the read, and the earliest one on idle memory (ps)."""
        cdef DeviceLocation location
        dram_location(&self.dram, bank, row, &location)
        self.horizon.now_ps = t
        expected = dram_read_dry_run(&self.dram, &location, bursts, t)
        return expected, dram_read(&self.dram, &location, bursts, t), t + dram_idle_ps(&self.dram, bursts)

    def write(self, uint32_t bank, uint32_t row, int bursts, int64_t t):
        """Writes; returns the time of acceptance (ps), the bursts then queued, and how many the queue takes."""
        cdef DeviceLocation location
        dram_location(&self.dram, bank, row, &location)
        self.horizon.now_ps = t
        accepted_ps = dram_write(&self.dram, &location, bursts, DEMAND, t)
        return accepted_ps, location.channel.queued_bursts, self.dram.write_queue_entries

    def refresh_began(self, uint32_t bank, int64_t t):
        """Start of a bank's last refresh at `t`, and the interval between two (ps); None if all banks refresh together."""
        if self.dram.refresh_began == NULL:
            return None
        return self.dram.refresh_began(&self.dram, self.dram.banks + bank, t), self.dram.timing.refi

    def read_slot(self, uint32_t bank, int64_t slot):
        """First slot that a read may take from `slot` on; None if it may take every free one."""
        cdef DeviceLocation location
        dram_location(&self.dram, bank, 0, &location)
        return None if self.dram.read_slot == NULL else self.dram.read_slot(&self.dram, location.channel, slot)


def carried_bytes(dict numbers, dict policies, payloads):
    """Bytes on the link for each payload.

    Parameters
    ----------
    numbers : the machine (`parameters.engine_numbers`)
    policies : an instance of each policy, by kind
    payloads : bytes of the transfers

    Returns
    -------
    list of (a read's data, its requests in the other direction, a write, its acknowledgements in the other direction)
    """
    cdef Arena arena = Arena(NULL)
    cdef Link* link
    cdef list carried = []
    try:
        link = <Link*>arena_zeroed(&arena, 1, sizeof(Link))
        link_init(&arena, link, numbers, policies)
        for payload in payloads:
            requests, acknowledgements = (
                0 if link.packets == NULL else link.packets(link, payload, transfer) for transfer in (READ_REQUEST, WRITE_ACK)
            )
            data = link_bytes(link, payload, READ_DATA), link_bytes(link, payload, WRITE_DATA)
            carried.append((data[0], requests, data[1], acknowledgements))
    finally:
        arena_free(&arena)
    return carried


def entry_times(dict numbers, banking, instructions):
    """When the lines of instructions enter the L1 of an SM, under a banking.

    Parameters
    ----------
    numbers : the machine (`parameters.engine_numbers`)
    banking : an instance of the banking
    instructions : of each the time of its issue (ps), and of each of its lines the mask of its sectors

    Returns
    -------
    list of (times at which its lines enter, arrival of the instruction), ps
    """
    cdef Arena arena = Arena(NULL)
    cdef MemorySystem* m
    cdef L1s l1
    cdef LineLocation line
    cdef StreamOp op
    cdef int64_t now, arrival
    cdef int number
    cdef list entered = [], times
    try:
        m = <MemorySystem*>arena_zeroed(&arena, 1, sizeof(MemorySystem))
        l1s_init(&arena, &l1, 1, numbers, banking)
        for issued, sectors in instructions:
            now = arrival = issued
            times = []
            op = (<StreamOp*>arena_zeroed(&arena, 1, sizeof(StreamOp)))[0]
            for number in range(len(sectors)):
                line.entry, line.masks = <uint32_t>number, sectors[number]
                arrival = l1_enter(&l1, m, l1.sms, now) if l1.enter == NULL else l1.enter(&l1, m, l1.sms, &line, number, now)
                times.append(arrival)
            entered.append((times, arrival if l1.leave == NULL else l1.leave(&l1, m, l1.sms, &op, arrival)))
    finally:
        arena_free(&arena)
    return entered


cdef list present_lines(const MetadataCache* cache):
    """Each line of a metadata cache, with its arrival (ps)."""
    cdef uint32_t number, way
    cdef CacheSet set
    cdef list present = []
    for number in range(cache.lines.units * cache.lines.sets.by):
        set = cache_set(&cache.lines, number * cache.lines.set_bytes)
        for way in range(cache.lines.ways):
            if set.tags[way] != SET_EMPTY:
                present.append((set.tags[way], set.ready_ps[way]))
    return present


def fetched_ahead(dict numbers, dict policies, dict metadata, allocations, entry_classes, lookups):
    """What the metadata cache holds after lookups, under a prefetcher.

    Parameters
    ----------
    numbers : the machine (`parameters.engine_numbers`)
    policies : an instance of each policy, by kind
    metadata : the metadata cache (`metadata_numbers`)
    allocations, entry_classes : as `ReplayEngine` takes them
    lookups : of each its entry and its time (ps), in the order of time

    Returns
    -------
    list of (lines with their arrivals, earliest arrival on idle memory of a line requested by this lookup, lookups counted), ps
    """
    cdef Arena arena = Arena(NULL)
    cdef MemorySystem* m
    cdef MetadataCache* cache
    cdef MetadataPrefetcherBase prefetcher = policies["metadata prefetcher"]
    cdef L1s l1
    cdef uint32_t entry
    cdef int64_t now
    cdef list after = []
    m = <MemorySystem*>arena_zeroed(&arena, 1, sizeof(MemorySystem))
    try:
        l1s_init(&arena, &l1, 1, numbers, policies["L1 banking"])
        _keep_alive = memory_init(&arena, m, &l1.cache, numbers, allocations, entry_classes, policies, True)
        m.scheme_state = arena_zeroed(&arena, 1, sizeof(BuddyState))
        cache = &(<BuddyState*>m.scheme_state).metadata
        metadata_init(&arena, m, cache, metadata)
        prefetcher.prepare(&arena)
        cache.fetch_ahead, cache.prefetcher = prefetcher.fetch_ahead, prefetcher.state
        for entry, now in lookups:
            m.horizon.now_ps = now
            look_up_in(m, cache, entry, metadata_set(cache, entry >> cache.line_shift), NULL, False, now)
            counted = cache.count.hits + cache.count.mshr_merges + cache.count.misses
            after.append((present_lines(cache), now + dram_idle_ps(&m.dram, cache.line_sectors), counted))
    finally:
        horizon_free(&m.horizon)
        arena_free(&arena)
    return after


def picks(WarpSchedulerBase policy, cases):
    """The warps that a policy picks.

    Parameters
    ----------
    policy : an instance of the policy
    cases : of each the times at which its warps can issue (ps), the oldest first; the index of the last issuer, or None; the
        time of the issue (ps)

    Returns
    -------
    list of int, of each case the index picked; None where the policy changed the scheduler
    """
    cdef Scheduler scheduler, before
    cdef int64_t now
    cdef int slot, picked
    cdef list picked_warps = []
    for ready, last_issuer, issued in cases:
        scheduler_init(&scheduler)
        for slot in range(len(ready)):
            scheduler_add(&scheduler, slot, ready[slot])
        scheduler.last_issuer = NO_ISSUER if last_issuer is None else last_issuer
        now = issued
        before = scheduler
        picked = scheduler_pick(&scheduler, now, policy.pick)
        picked_warps.append(picked if memcmp(&before, &scheduler, sizeof(Scheduler)) == 0 else None)
    return picked_warps
