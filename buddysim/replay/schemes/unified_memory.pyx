"""`unified-memory`: Unified Memory with oversubscription. A model, not the hardware that the paper measured (POWER9, 75 GB/s link).

Pages of 64 KB migrate on fault: every access that reaches the L2, load, store or atomic, needs its page in device memory. Faults
are handled in batches, one after the other, each `um.fault_batch_latency` long; within a 2 MB block a binary tree decides what is
prefetched: the largest subtree of which more than half is then resident is fetched whole (the rule that NVIDIA's driver is
described to follow). Pages lie in frames of device memory, of a page or more (`um.eviction_granularity`). The frame evicted to make room is the
one least recently accessed at the L2, or the one into which a page came the longest time ago (`um.eviction_order`); its pages go back over
the link whole, and their lines leave the caches. The run begins with the frames of lowest address resident, as many as fit, or
with none (`um.initial_location`). With `um.serialize_transfers` evictions and migrations follow each other, and batches wait for them, as in NVIDIA's
driver.
`um.fault_service` "batched" serves the faults of a batch together, sorted by address, a block at a time; all of them can be used when the
batch ends. When that is, is known only once the batch has started: an access is told when to look again, and its warp does so
in its turns (`wake_warp`), and faults anew where the page has been evicted meanwhile. With `um.fault_replay_scope` "sm" the whole SM
waits: it issues nothing until all that faulted there has found its page (`wake_sm`). With `um.max_pending_faults_per_sm` it has so many
accesses at most in flight that wait for pages; what has no room is held back. `um.zero_fill_untouched` moves no page that
nothing has written yet. docs/model-rules.md has the exact rules.

What a page is at the beginning follows from the allocations. So pages have states where accesses come, and take no memory or time
before: the frames resident from the beginning on that nothing has used since are the least recently used ones, in the order of
their addresses, and a number says how many of them have been looked at for eviction.
"""
from fractions import Fraction
from typing import Annotated

import numpy as np
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport qsort
from pydantic import Field, model_validator

from buddysim.machine import fields
from buddysim.machine.section import Duration, Section
from buddysim.machine.units import format_size, parse_time
from buddysim.replay.lazy_array import lazy_zeros

from buddysim.replay.engine.arena cimport Arena, arena_zeroed
from buddysim.replay.engine.dram cimport max_i64
from buddysim.replay.engine.events cimport NEVER, min_i64
from buddysim.replay.engine.kinds cimport ENTRY_BYTES, HOST, SCHEME_TRAFFIC
from buddysim.replay.engine.memory cimport (
    MemorySystem, AllocationState, invalidate_lines, link_bytes, link_cost, link_read, link_write, allocation_of,
)
from buddysim.replay.engine.port cimport FINE_BITS
from buddysim.replay.engine.scheme cimport SchemeBase
from buddysim.replay.engine.sm cimport MAX_WARPS
from buddysim.replay.engine.uncompressed cimport uncompressed_fill, uncompressed_writeback

ORDER = 40

cdef enum:                      # states of a page
    UNKNOWN = 0                  # not looked at yet: that of the beginning
    ON_HOST = -1                   # in host memory
    NOT_MANAGED = -2            # no allocation of device memory lies there
    MIGRATING = -3                 # in host memory, to be brought with the fault at hand
    FAULT_PENDING = -4                # in host memory, to be brought with the batch that is open
    INITIAL_RESIDENT = 1                   # resident from the beginning on, and not used since
    RESIDENT = 2                    # and all above: resident, of a frame of the list; when it came, in ps, added

cdef enum:                      # states of a frame
    NOT_IN_LRU = 0                # not used yet, or evicted
    IN_LRU = 1                  # of the list
    EVICTED_INITIAL = 2                  # evicted, though nothing had used it

cdef enum:
    MAX_PENDING_FAULTS = 64           # places that a warp waits for at once, beyond which it goes on without
    FAULT_SHIFT = 5             # log2 of the entries of 4 KiB, which is how the fault buffer tells addresses

cdef struct PendingFault:            # 4 KiB that an instruction of a warp waits for
    int64_t fault_block               # entry >> FAULT_SHIFT
    int64_t retry_ps            # the warp has been told that it comes then: time to look again
    int32_t accesses             # with a limit of the SM's faults: accesses of the warp there
    int32_t in_flight           # of these, not held back

cdef struct Span:               # pages in which allocations of device memory lie, one behind the other
    int64_t first
    int64_t end
    int64_t blocks_below            # frames that have such pages below its own

cdef struct UmState:
    int64_t n
    int64_t capacity            # frames
    const Span* spans
    int64_t n_spans
    int64_t n_initial_blocks        # frames resident at first
    int64_t n_initial_evicted              # of these, in order: none of them is unused and resident any more
    int64_t n_spans_evicted        # spans of which that is true of all frames
    int64_t resident            # frames
    int entries_shift           # log2 of entries per page
    int eviction_block_shift             # log2 of pages per frame
    bint lru_by_migration               # a frame is as recently used as the last page that came into it
    bint serial                 # evictions, migrations and batches follow each other
    int pages_per_va_block         # pages under one prefetch tree
    int64_t page_ps             # of the link's time
    int64_t fault_batch_ps
    int max_batch_faults             # most faults of a batch
    int64_t batch_start_ps
    int64_t batch_end_ps
    int batch_faults            # by block: 0 where no batch is open
    int batch_pages             # by block: how many pages they are in
    int64_t batches
    bint batched_service               # a batch is served when it starts, block by block
    int64_t* batch              # [fault_batch]: by block, the pages of the batch that is open
    int64_t last_migration_ps             # when the page migrated last can be used
    PendingFault* pending_faults            # [warps * MOST_AWAITED]
    int8_t* n_pending_faults           # [warps]
    int64_t* replay_ready_ps        # [n]: by block, when the latest batch ended that has brought the page and left it there
    bint sm_replay                  # an SM issues nothing while what faulted there is tried again, each time that a batch ends
    int32_t max_in_flight      # by SM: most accesses in flight that wait for pages; 0: no limit
    int32_t* in_flight          # [SMs]: with a limit, how many are
    int32_t* n_buffered_faults           # [SMs]: by SM, places that its warps await
    int64_t* stall_start_ps         # [SMs]: by SM, since when there are any
    int64_t* replay_done_ps         # [SMs]: by SM, when the last of them that has come was there
    int64_t* resume_ps           # [warps]: by SM, the same of a warp's
    int8_t* has_data              # [n]: of each page, that it has been written, or in device memory; NULL: all are moved
    int32_t* newer              # LRU list over the used frames, in which frame f has the number f + 1; 0 is the sentinel
    int32_t* older
    int8_t* lru_state              # state of each frame
    int64_t* state
    int64_t faults
    int64_t prefetched
    int64_t evicted
    int64_t dirty_sectors       # of the L2, that left it with their pages


cdef inline int64_t eviction_block_index(const UmState* um, const Span* span, int64_t page) noexcept nogil:
    """How many frames with managed pages lie below that of a page."""
    return span.blocks_below + (page >> um.eviction_block_shift) - (span.first >> um.eviction_block_shift)


cdef inline int64_t initial_state(const UmState* um, int64_t page) noexcept nogil:
    """What a page is at the beginning: resident if few enough frames of lower addresses are managed."""
    cdef int64_t low = 0, high = um.n_spans, middle
    while low < high:           # the first span that ends behind it
        middle = (low + high) // 2
        if um.spans[middle].end <= page:
            low = middle + 1
        else:
            high = middle
    if low == um.n_spans or page < um.spans[low].first:
        return NOT_MANAGED
    return INITIAL_RESIDENT if eviction_block_index(um, &um.spans[low], page) < um.n_initial_blocks else ON_HOST


cdef inline int64_t state_of(UmState* um, int64_t page) noexcept nogil:
    if um.state[page] == UNKNOWN:
        um.state[page] = initial_state(um, page)
    return um.state[page]


cdef inline void unlink_block(UmState* um, int64_t eviction_block) noexcept nogil:
    cdef int64_t number = eviction_block + 1
    um.newer[um.older[number]] = um.newer[number]
    um.older[um.newer[number]] = um.older[number]


cdef inline void touch_block(UmState* um, int64_t eviction_block) noexcept nogil:
    """The frame is the most recently used one."""
    cdef int32_t number = <int32_t>(eviction_block + 1), newest
    if um.lru_state[eviction_block] == IN_LRU:
        unlink_block(um, eviction_block)
    um.lru_state[eviction_block] = IN_LRU
    newest = um.older[0]
    um.older[number] = newest
    um.newer[number] = 0
    um.newer[newest] = number
    um.older[0] = number


cdef inline int64_t pop_lru_block(UmState* um) noexcept nogil:
    """The frame used the longest time ago; it is in no list any more."""
    cdef int64_t eviction_block
    cdef const Span* span
    while um.n_initial_evicted < um.n_initial_blocks:
        span = &um.spans[um.n_spans_evicted]
        if eviction_block_index(um, span, span.end - 1) < um.n_initial_evicted:
            um.n_spans_evicted += 1
            continue
        eviction_block = (span.first >> um.eviction_block_shift) + um.n_initial_evicted - span.blocks_below
        um.n_initial_evicted += 1
        if um.lru_state[eviction_block] == NOT_IN_LRU:
            um.lru_state[eviction_block] = EVICTED_INITIAL
            return eviction_block
    eviction_block = um.newer[0] - 1
    unlink_block(um, eviction_block)
    um.lru_state[eviction_block] = EVICTED_INITIAL
    return eviction_block


cdef inline int64_t evict_lru_block(MemorySystem* m, UmState* um, int64_t t) noexcept nogil:
    """Sends the pages of the frame used the longest time ago back, and their lines with them; when they have gone."""
    cdef int64_t eviction_block = pop_lru_block(um), page, first_entry, entries, evicted_ps = t
    for page in range(eviction_block << um.eviction_block_shift, min_i64(um.n, eviction_block + 1 << um.eviction_block_shift)):
        if state_of(um, page) < INITIAL_RESIDENT:
            continue
        first_entry = page << um.entries_shift
        entries = min_i64(m.n_entries - first_entry, 1 << um.entries_shift)
        um.state[page] = ON_HOST
        um.evicted += 1
        if um.has_data != NULL:
            um.has_data[page] = 1
        um.dirty_sectors += invalidate_lines(m, <uint32_t>first_entry, <uint32_t>entries)
        evicted_ps = link_write(m, <int64_t>ENTRY_BYTES << um.entries_shift, SCHEME_TRAFFIC, t) + um.page_ps
    um.resident -= 1
    return evicted_ps


cdef inline void migrate_in(MemorySystem* m, UmState* um, int64_t page, int64_t t) noexcept nogil:
    cdef int64_t eviction_block = page >> um.eviction_block_shift, evicted_ps, last_migration_ps
    if um.serial:
        t = um.batch_end_ps
    if um.lru_state[eviction_block] != IN_LRU:
        if um.resident == um.capacity:
            evicted_ps = evict_lru_block(m, um, t)
            if um.serial:
                t = evicted_ps
        um.resident += 1
    touch_block(um, eviction_block)
    if um.has_data == NULL or um.has_data[page]:
        last_migration_ps = link_read(m, <int64_t>ENTRY_BYTES << um.entries_shift, SCHEME_TRAFFIC, t)
    else:
        last_migration_ps = t
        um.has_data[page] = 1
    um.state[page] = RESIDENT + last_migration_ps
    um.last_migration_ps = max_i64(um.last_migration_ps, last_migration_ps)
    if um.serial:
        um.batch_end_ps = last_migration_ps


cdef inline int64_t join_batch(UmState* um, int64_t t) noexcept nogil:
    """When the batch ends that handles a fault at `t`: one that has not begun yet, or a new one."""
    if t > um.batch_start_ps or um.batch_faults == um.max_batch_faults:
        um.batch_start_ps = max_i64(t, um.batch_end_ps)
        um.batch_end_ps = um.batch_start_ps + um.fault_batch_ps
        um.batch_faults = 0
        um.batches += 1
    um.batch_faults += 1
    return um.batch_end_ps


cdef inline void find_subtree(UmState* um, int64_t page, int64_t* first, int64_t* end) noexcept nogil:
    """The largest subtree of which more than half is resident with `page`, or faulted; else the page alone."""
    cdef int64_t begin, stop, other, resident, state, size = 2
    first[0], end[0] = page, page + 1
    while size <= um.pages_per_va_block:
        begin = page / size * size
        stop = min_i64(begin + size, um.n)
        resident = 1
        for other in range(begin, stop):
            state = state_of(um, other)
            resident += state >= INITIAL_RESIDENT or (state == FAULT_PENDING and other != page)
        if 2 * resident > size:
            first[0], end[0] = begin, stop
        size *= 2


cdef inline void migrate_for_fault(MemorySystem* m, UmState* um, int64_t page, int64_t t) noexcept nogil:
    """Migrates a page in, and what the tree prefetches with it: what is absent of the subtree now.

    These are at most as many pages as are resident in the subtree, so that none of them evicts another.
    """
    cdef int64_t other, first, end, end_ps = join_batch(um, t)
    find_subtree(um, page, &first, &end)
    for other in range(first, end):
        if state_of(um, other) == ON_HOST:
            um.state[other] = MIGRATING
    um.faults += 1
    migrate_in(m, um, page, end_ps)
    for other in range(first, end):
        if um.state[other] == MIGRATING:
            migrate_in(m, um, other, end_ps)
            um.prefetched += 1


cdef int compare_pages(const void* left_page, const void* other) noexcept nogil:
    cdef int64_t a = (<const int64_t*>left_page)[0], b = (<const int64_t*>other)[0]
    return (a > b) - (a < b)


cdef void serve_batch(MemorySystem* m, UmState* um) noexcept nogil:
    """Serves the open batch: in the order of addresses, what faulted of a block and what the tree adds. All can be used at its end.

    What later blocks of the batch evict again is not there then: who waits for it will fault anew.
    """
    cdef int64_t* faulted_pages = um.batch
    cdef int64_t page, first, end, begin, stop
    cdef int i, k, next_fault = 0, n = um.batch_pages
    qsort(faulted_pages, n, sizeof(int64_t), compare_pages)
    um.batch_end_ps = max_i64(um.batch_start_ps + um.fault_batch_ps, m.now_ps)
    um.last_migration_ps = um.batch_end_ps
    um.batch_faults = um.batch_pages = 0
    while next_fault < n:
        i = next_fault
        begin = faulted_pages[i] / um.pages_per_va_block * um.pages_per_va_block
        stop = min_i64(begin + um.pages_per_va_block, um.n)
        while next_fault < n and faulted_pages[next_fault] < stop:
            next_fault += 1
        for k in range(i, next_fault):
            find_subtree(um, faulted_pages[k], &first, &end)
            for page in range(first, end):
                if um.state[page] == ON_HOST:
                    um.state[page] = MIGRATING
        for k in range(i, next_fault):
            migrate_in(m, um, faulted_pages[k], um.batch_end_ps)
            um.state[faulted_pages[k]] = NEVER
        for page in range(begin, stop):
            if um.state[page] == MIGRATING:
                migrate_in(m, um, page, um.batch_end_ps)
                um.state[page] = NEVER
                um.prefetched += 1
    begin = -1
    for k in range(n):
        if faulted_pages[k] < begin:
            continue
        begin = faulted_pages[k] / um.pages_per_va_block * um.pages_per_va_block
        stop = min_i64(begin + um.pages_per_va_block, um.n)
        for page in range(begin, stop):
            if um.state[page] == NEVER:          # it came with this batch, and is still there
                um.state[page] = RESIDENT + um.last_migration_ps
                um.replay_ready_ps[page] = um.last_migration_ps
        begin = stop


cdef inline int64_t add_to_batch(UmState* um, int64_t page, int64_t t) noexcept nogil:
    """A fault in an absent page, for the batch that is open at `t`, unless that is full; returns when it is time to look again."""
    if um.batch_faults == um.max_batch_faults:
        return um.batch_start_ps + um.fault_batch_ps
    if not um.batch_faults:
        um.batch_start_ps = max_i64(t, um.batch_end_ps)
        um.batches += 1
    if um.state[page] != FAULT_PENDING:
        um.batch[um.batch_pages] = page
        um.batch_pages += 1
        um.state[page] = FAULT_PENDING
    um.batch_faults += 1
    um.faults += 1
    return um.batch_start_ps + um.fault_batch_ps


cdef inline void serve_due_batch(MemorySystem* m, UmState* um, int64_t t) noexcept nogil:
    if um.batch_faults and t > um.batch_start_ps:
        serve_batch(m, um)


cdef inline int32_t free_fault_slots(const UmState* um, int sm) noexcept nogil:
    return um.max_in_flight - um.in_flight[sm]


cdef inline int64_t fault_accesses(UmState* um, int64_t page, int accesses, int64_t t) noexcept nogil:
    """Faults of so many accesses to a page, none if all are held back; returns when it is time to look again."""
    cdef int64_t retry_ps = um.batch_start_ps + um.fault_batch_ps if um.batch_faults else max_i64(t, um.last_migration_ps)
    cdef int _
    for _ in range(accesses):
        retry_ps = add_to_batch(um, page, t)
    return retry_ps


cdef inline int64_t add_pending_fault(MemorySystem* m, UmState* um, uint32_t entry, int64_t t) noexcept nogil:
    """A fault, unless the open batch has one of this warp at this place; returns when it is time to look again.

    With a limit every access faults for which there is room, also where the page is on its way already.
    """
    cdef int64_t fault_block = entry >> FAULT_SHIFT, page = entry >> um.entries_shift, retry_ps
    cdef PendingFault* faults = um.pending_faults + <int64_t>m.warp * MAX_PENDING_FAULTS
    cdef int i = 0, n = um.n_pending_faults[m.warp], sm = m.warp / MAX_WARPS, sent = 0
    while i < n and faults[i].fault_block != fault_block:
        i += 1
    if um.max_in_flight:
        sent = free_fault_slots(um, sm) > 0
        if um.state[page] >= INITIAL_RESIDENT:
            retry_ps = um.state[page] - RESIDENT
        else:
            retry_ps = fault_accesses(um, page, sent, t)
    elif i < n and um.state[page] == FAULT_PENDING:
        retry_ps = um.batch_start_ps + um.fault_batch_ps
    else:
        retry_ps = add_to_batch(um, page, t)
    if i < MAX_PENDING_FAULTS:
        faults[i].fault_block, faults[i].retry_ps = fault_block, retry_ps
        um.n_pending_faults[m.warp] = <int8_t>(n + (i == n))
        if um.max_in_flight:
            faults[i].accesses = 1 + (faults[i].accesses if i < n else 0)
            faults[i].in_flight = sent + (faults[i].in_flight if i < n else 0)
            um.in_flight[sm] += sent
        if um.sm_replay and i == n:
            um.stall_start_ps[sm] = min_i64(um.stall_start_ps[sm], t) if um.n_buffered_faults[sm] else t
            um.n_buffered_faults[sm] += 1
    return retry_ps


cdef int64_t access_batched(MemorySystem* m, uint32_t entry, int64_t t) noexcept nogil:
    """When the page of an entry can be used by an access that comes at `t`; or when its warp has to look again."""
    cdef UmState* um = <UmState*>m.scheme_state
    cdef int64_t page = entry >> um.entries_shift, state
    if allocation_of(m, entry).placement == HOST:
        return t
    serve_due_batch(m, um, t)
    state = state_of(um, page)
    if state < INITIAL_RESIDENT or um.max_in_flight and state - RESIDENT > t:
        return add_pending_fault(m, um, entry, t)
    if not um.lru_by_migration:
        if state == INITIAL_RESIDENT:
            um.state[page] = RESIDENT
        touch_block(um, page >> um.eviction_block_shift)
    return max_i64(t, um.state[page] - RESIDENT)


cdef inline bint is_resident_at(const UmState* um, const PendingFault* pending_faults, int64_t t, int64_t* resume_ps) noexcept nogil:
    """Whether what was held back finds its page at `t`: a batch has brought it that ended before it was time to look again."""
    cdef int64_t state = um.state[pending_faults.fault_block >> um.entries_shift - FAULT_SHIFT]
    if um.max_in_flight and state >= INITIAL_RESIDENT and state - RESIDENT <= t:
        resume_ps[0] = max_i64(resume_ps[0], t)
        return True
    return False


cdef inline bint arrived_with_batch(const UmState* um, const PendingFault* pending_faults, int64_t* resume_ps) noexcept nogil:
    """Whether the page that is awaited came with a batch and stayed; then who waits can go on at `resume_ps`, when it ended."""
    cdef int64_t last_migration_ps = um.replay_ready_ps[pending_faults.fault_block >> um.entries_shift - FAULT_SHIFT]
    if last_migration_ps >= pending_faults.retry_ps:
        resume_ps[0] = max_i64(resume_ps[0], last_migration_ps)
        return True
    return False


cdef int64_t wake_warp(MemorySystem* m, int warp, bint at_end, int64_t t) noexcept nogil:
    """When a warp whose turn comes at `t` can go on: what it waits for may have come later, or gone again before it was used."""
    cdef UmState* um = <UmState*>m.scheme_state
    cdef PendingFault* faults
    cdef int i, n_remaining = 0, n = um.n_pending_faults[warp]
    cdef int64_t resume_ps = t
    if not n:
        return t
    faults = um.pending_faults + <int64_t>warp * MAX_PENDING_FAULTS
    serve_due_batch(m, um, t)
    for i in range(n):
        if faults[i].retry_ps <= t:
            if arrived_with_batch(um, &faults[i], &resume_ps):
                continue
            faults[i].retry_ps = add_to_batch(um, faults[i].fault_block >> um.entries_shift - FAULT_SHIFT, t)
            resume_ps = max_i64(resume_ps, faults[i].retry_ps)
        elif at_end:            # a warp ends with all its accesses, whichever it waits for otherwise
            resume_ps = max_i64(resume_ps, faults[i].retry_ps)
        faults[n_remaining] = faults[i]
        n_remaining += 1
    um.n_pending_faults[warp] = <int8_t>n_remaining
    return resume_ps


cdef int64_t replay_faults(UmState* um, int warp, int64_t t) noexcept nogil:
    """A warp of an SM looks again for what it awaits; returns when it has to do so next, at the earliest."""
    cdef PendingFault* faults = um.pending_faults + <int64_t>warp * MAX_PENDING_FAULTS
    cdef int i, sent, n_remaining = 0, sm = warp / MAX_WARPS
    cdef int64_t next_ps = NEVER
    for i in range(um.n_pending_faults[warp]):
        if faults[i].retry_ps <= t:
            if arrived_with_batch(um, &faults[i], &um.resume_ps[warp]) or is_resident_at(um, &faults[i], t, &um.resume_ps[warp]):
                um.n_buffered_faults[sm] -= 1
                if um.max_in_flight:
                    um.in_flight[sm] -= faults[i].in_flight
                um.replay_done_ps[sm] = max_i64(um.replay_done_ps[sm], um.resume_ps[warp])
                continue
            if t < um.last_migration_ps:       # faults anew when that batch has ended
                faults[i].retry_ps = um.last_migration_ps
            elif um.max_in_flight:
                sent = <int>min_i64(faults[i].accesses - faults[i].in_flight, free_fault_slots(um, sm))
                faults[i].in_flight += sent
                um.in_flight[sm] += sent
                faults[i].retry_ps = fault_accesses(
                    um, faults[i].fault_block >> um.entries_shift - FAULT_SHIFT, faults[i].in_flight, t
                )
            else:
                faults[i].retry_ps = add_to_batch(um, faults[i].fault_block >> um.entries_shift - FAULT_SHIFT, t)
        next_ps = min_i64(next_ps, faults[i].retry_ps)
        faults[n_remaining] = faults[i]
        n_remaining += 1
    um.n_pending_faults[warp] = <int8_t>n_remaining
    return next_ps


cdef int64_t wake_sm(MemorySystem* m, int warp, bint at_end, int64_t t) noexcept nogil:
    """When a warp whose turn comes at `t` can go on: not while anything that faulted on its SM, and was known then, is awaited.

    Nor while the SM has as much in flight as it can.
    """
    cdef UmState* um = <UmState*>m.scheme_state
    cdef int sm = warp / MAX_WARPS, other
    cdef int64_t next_ps = NEVER
    cdef bint full = um.max_in_flight and not free_fault_slots(um, sm)
    if um.n_buffered_faults[sm] and (um.n_pending_faults[warp] or not (at_end or t < um.stall_start_ps[sm] and not full)):
        serve_due_batch(m, um, t)
        for other in range(sm * MAX_WARPS, (sm + 1) * MAX_WARPS):
            if um.n_pending_faults[other]:
                next_ps = min_i64(next_ps, replay_faults(um, other, t))
        if um.n_buffered_faults[sm] and (um.n_pending_faults[warp] or not at_end):
            return max_i64(t, next_ps)
    return max_i64(t, um.resume_ps[warp] if at_end else um.replay_done_ps[sm])


cdef void mark_written(MemorySystem* m, uint32_t first_entry, uint32_t end_entry) noexcept nogil:
    cdef UmState* um = <UmState*>m.scheme_state
    cdef int64_t page
    for page in range(first_entry >> um.entries_shift, (<int64_t>end_entry - 1 >> um.entries_shift) + 1):
        um.has_data[page] = 1


cdef int64_t access(MemorySystem* m, uint32_t entry, int64_t t) noexcept nogil:
    """When the page of an entry can be used by an access that comes at `t`."""
    cdef UmState* um = <UmState*>m.scheme_state
    cdef int64_t page = entry >> um.entries_shift, state
    if allocation_of(m, entry).placement == HOST:
        return t
    state = state_of(um, page)
    if state < INITIAL_RESIDENT:
        migrate_for_fault(m, um, page, t)
    elif not um.lru_by_migration:
        if state == INITIAL_RESIDENT:
            um.state[page] = RESIDENT
        touch_block(um, page >> um.eviction_block_shift)
    return max_i64(t, um.state[page] - RESIDENT)


cdef bint may_cache(MemorySystem* m, uint32_t entry) noexcept nogil:
    """A copy or fill writes a page where it is: only lines of resident ones can be in the L2."""
    cdef UmState* um = <UmState*>m.scheme_state
    return allocation_of(m, entry).placement == HOST or state_of(um, entry >> um.entries_shift) >= INITIAL_RESIDENT


class UmConfig(Section):
    """Unified Memory with oversubscription: the section `[um]` of a machine file."""

    oversubscription: Annotated[float, fields.number(0.0, 0.999)] = Field(
        default=0.5, description="fraction of the footprint that exceeds device memory"
    )
    page_size: Annotated[int, fields.size("4 KiB", "2 MiB")] = Field(
        default=64 * 1024, description="size of a page, the unit of migration"
    )
    va_block_size: Annotated[int, fields.size("4 KiB", "1 GiB")] = Field(
        default=2 * 1024**2, description="size of a VA block, whose pages are under one prefetch tree"
    )
    eviction_granularity: Annotated[int, fields.size("0 B", "1 GiB")] = Field(
        default=0,
        description="size of the aligned group of pages for which device memory is allocated, and evicted, at once; 0 B: one page",
    )
    capacity: Annotated[int, fields.size("0 B", "1 TiB")] = Field(
        default=0, description="device memory for pages; 0 B: the footprint less um.oversubscription"
    )
    initial_location: Annotated[str, fields.one_of("device", "host")] = Field(
        default="device",
        description="location of pages before the first kernel; device: as many as fit are resident, the lowest first; host: none is",
    )
    eviction_order: Annotated[str, fields.one_of("lru_access", "lru_migration")] = Field(
        default="lru_access",
        description="order of evictions; lru_access: the group least recently accessed or migrated to; "
        "lru_migration: the group least recently migrated to",
    )
    serialize_transfers: Annotated[bool, fields.switch()] = Field(
        default=False,
        description="overlap of migrations; true: a migration waits for its evictions, and the next batch for both; false: they overlap",
    )
    fault_batch_latency: Duration = Field(default=parse_time("30 us"), description="time to service one fault batch")
    max_batch_faults: Annotated[int, fields.count(1, 1_000_000)] = Field(
        default=256, description="maximum number of faults in a fault batch"
    )
    fault_service: Annotated[str, fields.one_of("immediate", "batched")] = Field(
        default="immediate",
        description="service of faults; immediate: each as it arrives; batched: those of a batch when it starts, in address "
        "order, one VA block at a time, and warps resume when the batch ends",
    )
    fault_replay_scope: Annotated[str, fields.one_of("warp", "sm")] = Field(
        default="warp",
        description="warps that stop at a fault and replay it; warp: the faulting one; sm: all of its SM, which issues "
        "nothing until its faults are serviced and replays them when a batch ends",
    )
    max_pending_faults_per_sm: Annotated[int, fields.count(0, 1_000_000)] = Field(
        default=0,
        description="maximum accesses to lines of an SM that wait for pages; at this number the SM issues nothing; "
        "0: unlimited, with one fault for each 4 KiB that a warp accesses",
    )
    zero_fill_untouched: Annotated[bool, fields.switch()] = Field(
        default=False,
        description="first migration of pages that no memcpy, memset or kernel has written; true: they are zero-filled on "
        "the GPU; false: they are copied from the host",
    )

    @model_validator(mode="after")
    def _sizes_are_simulated(self):
        group = self.eviction_granularity or self.page_size
        sizes = ("page_size", self.page_size), ("va_block_size", self.va_block_size), ("eviction_granularity", group)
        for key, size in sizes:
            if size & (size - 1):
                raise ValueError(f"{key}: {format_size(size)}: expected a power of two")
        if self.va_block_size < self.page_size:
            raise ValueError(f"va_block_size: {format_size(self.va_block_size)}: expected at least page_size, "
                             f"{format_size(self.page_size)}")
        if group != self.page_size and group < self.va_block_size:
            raise ValueError(f"eviction_granularity: {format_size(group)}: expected page_size or at least va_block_size")
        if self.fault_service == "batched" and group < self.va_block_size:   # pages of a VA block would evict each other
            raise ValueError("fault_service: batched: expected an eviction_granularity of at least va_block_size")
        if self.fault_replay_scope == "sm" and self.fault_service != "batched":
            raise ValueError("fault_replay_scope: sm: expected fault_service batched")
        if self.max_pending_faults_per_sm and self.fault_replay_scope != "sm":
            raise ValueError("max_pending_faults_per_sm: expected fault_replay_scope sm")
        return self


cdef class Scheme(SchemeBase):
    SECTION = UmConfig
    SECTION_NAME = "um"
    SUMMARY = "Unified Memory, pages migrating on fault into device memory that is too small"
    assumptions = {
        "um": "Unified Memory is a model (fault batches, tree prefetch, LRU eviction), not the hardware the paper measured; "
        "the run begins with the pages where `um.initial_location` says: the lowest ones resident, as many as fit, or all on the host",
    }
    COUNTERS = {
        "um.page_faults": "faults: Loads, stores and atomics to a page that is neither resident nor migrating.",
        "um.resident_bytes": "B: Device memory for pages of the program's device allocations.",
        "um.fault_handling_busy_ps": "ps: Time in which fault batches were handled, `um.fault_batch_latency` each.",
        "um.pages_prefetched": "pages: Pages that migrate to device memory with a faulting page of their VA block.",
        "um.pages_evicted": "pages: Pages evicted from device memory to free it for others.",
        "um.evicted_dirty_sectors": "sectors: Dirty sectors that the L2 writes back because their page is evicted.",
        "link.migration_in_bytes": "B: Data of pages that migrate to device memory.",
        "link.migration_out_bytes": "B: Data of evicted pages that is written to host memory.",
    }
    cdef UmState config            # what the machine says of the pages
    cdef int64_t warps          # that the machine holds
    cdef bint zero_fill
    cdef object keep_alive            # the memory of their states

    def __cinit__(self):
        self.fill, self.writeback = uncompressed_fill, uncompressed_writeback
        self.on_access, self.may_cache = access, may_cache

    def configure(self, machine, allocated_entries, capacity_bytes):
        cdef int64_t fitting = int(allocated_entries * (1 - Fraction(str(machine.um.oversubscription))))
        self.config.entries_shift = (machine.um.page_size // ENTRY_BYTES).bit_length() - 1
        self.config.eviction_block_shift = ((machine.um.eviction_granularity or machine.um.page_size) // machine.um.page_size).bit_length() - 1
        if capacity_bytes is not None or machine.um.capacity:
            fitting = (machine.um.capacity if capacity_bytes is None else capacity_bytes) // ENTRY_BYTES
        self.config.capacity = max_i64(1, fitting >> self.config.entries_shift + self.config.eviction_block_shift)
        self.config.lru_by_migration, self.config.serial = machine.um.eviction_order == "lru_migration", machine.um.serialize_transfers
        self.config.n_initial_blocks = self.config.capacity if machine.um.initial_location == "device" else 0
        self.config.pages_per_va_block = machine.um.va_block_size // machine.um.page_size
        self.config.fault_batch_ps, self.config.max_batch_faults = machine.ps(machine.um.fault_batch_latency), machine.um.max_batch_faults
        self.config.batched_service, self.zero_fill = machine.um.fault_service == "batched", machine.um.zero_fill_untouched
        self.warps = machine.sm.count * MAX_WARPS
        if self.config.batched_service:
            self.config.sm_replay, self.config.max_in_flight = machine.um.fault_replay_scope == "sm", machine.um.max_pending_faults_per_sm
            self.on_access, self.on_wake = access_batched, wake_sm if self.config.sm_replay else wake_warp
        if self.zero_fill:
            self.on_written = mark_written

    def device_bytes(self, occupied_bytes):
        entries_shift = self.config.entries_shift + self.config.eviction_block_shift
        return min(occupied_bytes, (self.config.capacity << entries_shift) * ENTRY_BYTES)

    cdef int prepare(self, MemorySystem* m, Arena* arena) except -1:
        """Makes the frames of lowest address resident, if any."""
        cdef UmState* um = <UmState*>arena_zeroed(arena, 1, sizeof(UmState))
        cdef int64_t[::1] state
        cdef int32_t[::1] newer, older
        cdef int8_t[::1] lru_state
        cdef uint8_t[::1] pending_faults, n_pending_faults, batch, replayed, has_data
        cdef int64_t eviction_blocks
        um[0] = self.config
        um.n = (m.n_entries >> um.entries_shift) + 1
        um.batch_start_ps = -1
        state = lazy_zeros(um.n * sizeof(int64_t)).view(np.int64)
        eviction_blocks = (um.n - 1 >> um.eviction_block_shift) + 1
        newer, older = (lazy_zeros((eviction_blocks + 1) * sizeof(int32_t)).view(np.int32) for _ in range(2))
        lru_state = lazy_zeros(eviction_blocks).view(np.int8)
        um.state, um.newer, um.older, um.lru_state = &state[0], &newer[0], &older[0], &lru_state[0]
        self.keep_alive = [state, newer, older, lru_state]
        if um.batched_service:
            pending_faults = lazy_zeros(self.warps * MAX_PENDING_FAULTS * sizeof(PendingFault))
            n_pending_faults = lazy_zeros(self.warps)
            batch, replayed = (lazy_zeros(n * sizeof(int64_t)) for n in (um.max_batch_faults, um.n))
            um.replay_ready_ps = <int64_t*>&replayed[0]
            um.pending_faults, um.n_pending_faults, um.batch = <PendingFault*>&pending_faults[0], <int8_t*>&n_pending_faults[0], <int64_t*>&batch[0]
            self.keep_alive += [pending_faults, n_pending_faults, batch, replayed]
            um.in_flight = <int32_t*>arena_zeroed(arena, self.warps // MAX_WARPS, sizeof(int32_t))
            um.n_buffered_faults = <int32_t*>arena_zeroed(arena, self.warps // MAX_WARPS, sizeof(int32_t))
            um.stall_start_ps = <int64_t*>arena_zeroed(arena, self.warps // MAX_WARPS, sizeof(int64_t))
            um.replay_done_ps = <int64_t*>arena_zeroed(arena, self.warps // MAX_WARPS, sizeof(int64_t))
            um.resume_ps = <int64_t*>arena_zeroed(arena, self.warps, sizeof(int64_t))
        if self.zero_fill:
            has_data = lazy_zeros(um.n)
            um.has_data = <int8_t*>&has_data[0]
            self.keep_alive.append(has_data)
        um.n_initial_blocks = min_i64(um.n_initial_blocks, self.find_spans(m, um, arena))
        um.resident = um.n_initial_blocks
        um.page_ps = link_cost(&m.link, link_bytes(&m.link, <int64_t>ENTRY_BYTES << um.entries_shift)) >> FINE_BITS
        m.scheme_state = um
        return 0

    cdef int64_t find_spans(self, const MemorySystem* m, UmState* um, Arena* arena) except -1:
        """The pages of all allocations of device memory, those of one place at different times once; their frames."""
        cdef Span* spans = <Span*>arena_zeroed(arena, m.n_allocations + 1, sizeof(Span))
        cdef Span* last
        cdef const AllocationState* allocation
        cdef int64_t first, end, eviction_blocks = 0, last_block = -1
        cdef int number
        for number in sorted(range(m.n_allocations), key=lambda number: m.allocations[<int>number].first_entry):
            allocation = &m.allocations[number]
            if allocation.placement == HOST:
                continue
            first = allocation.first_entry >> um.entries_shift
            end = (<int64_t>allocation.first_entry + allocation.entries - 1 >> um.entries_shift) + 1
            if um.n_spans and first <= spans[um.n_spans - 1].end:
                last = &spans[um.n_spans - 1]
                last.end = max_i64(last.end, end)
            else:
                last = &spans[um.n_spans]
                last.first, last.end, last.blocks_below = first, end, eviction_blocks
                if eviction_blocks and first >> um.eviction_block_shift == last_block:      # in which the span below ends
                    last.blocks_below -= 1
                um.n_spans += 1
            eviction_blocks = eviction_block_index(um, last, last.end - 1) + 1
            last_block = last.end - 1 >> um.eviction_block_shift
        um.spans = spans
        return eviction_blocks

    cdef dict counters(self, const MemorySystem* m):
        cdef const UmState* um = <const UmState*>m.scheme_state
        return {
            "um.page_faults": um.faults,
            "um.resident_bytes": (um.capacity << um.entries_shift + um.eviction_block_shift) * ENTRY_BYTES,
            "um.fault_handling_busy_ps": um.batches * um.fault_batch_ps,
            "um.pages_prefetched": um.prefetched,
            "um.pages_evicted": um.evicted,
            "um.evicted_dirty_sectors": um.dirty_sectors,
            "link.migration_in_bytes": m.count.link_read[<int>SCHEME_TRAFFIC],
            "link.migration_out_bytes": m.count.link_write[<int>SCHEME_TRAFFIC],
        }
