"""`unified-memory`: Unified Memory with oversubscription. It models UVM, not the system that the paper measured (POWER9, 75
GB/s).

Every access that reaches the L2 (load, store, atomic) needs its page in device memory; an absent page is migrated on a fault.
Fault batches are serviced one after the other, each for `um.fault_batch_latency`. A binary tree over the pages of a VA block
decides what is prefetched with a page: the largest subtree of which more than half is then resident (the rule that NVIDIA's
driver is described to follow). Device memory is allocated and evicted in eviction blocks of one or more pages
(`um.eviction_granularity`). The evicted block is the one least recently accessed at the L2, or the one least recently migrated
to (`um.eviction_order`). Eviction writes its pages back over the link and invalidates their lines in the caches. Initially the
blocks of lowest address are resident, as many as fit, or none (`um.initial_location`). With `um.serialize_transfers`, evictions
and migrations follow each other, and batches wait for them, as in NVIDIA's driver.

With `um.fault_service` "batched", a batch services its faults together, in address order, one VA block at a time, before the
first event after its start (`on_due`); all of its pages can be used when it ends. That time is known only then. So an access gets
a time at which it is replayed, whatever its warp does then; it faults again if its page is absent, and the warp waits for it at its
next issue (`wake_warp`). With `um.fault_replay_scope` "sm", the whole SM waits: it issues nothing until all of its faults have been
serviced (`wake_sm`).
`um.max_pending_faults_per_sm` limits its accesses that wait for pages; further ones are held back. `um.zero_fill_untouched`
transfers no page that has never been written. docs/reference/replay-rules.md has the exact rules.

The initial state of a page follows from the allocations. So states of pages are created at their first access, and take no
memory or time before. Initially resident blocks that have not been used are the least recently used ones, in address order; a
number counts those that an eviction has examined.
"""
from fractions import Fraction
from typing import Annotated

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport qsort
from pydantic import model_validator

from buddysim.machine import fields
from buddysim.machine.section import Duration, Section, Switch
from buddysim.machine.units import format_size, parse_time
from buddysim.replay.component.shown import ShownRow
from buddysim.replay.lazy_array import lazy_zeros

from buddysim.replay.l2.l2 cimport invalidate_lines
from buddysim.replay.link.transfers cimport link_read, link_write
from buddysim.replay.memory.allocations cimport allocation_of
from buddysim.replay.memory.memory cimport MemorySystem, AllocationState
from buddysim.replay.primitives.arena cimport Arena, arena_zeroed
from buddysim.replay.primitives.events cimport NEVER
from buddysim.replay.primitives.extremes cimport max_i64, min_i64
from buddysim.replay.primitives.kinds cimport ENTRY_BYTES, HOST, SCHEME_TRAFFIC
from buddysim.replay.schemes.base cimport SchemeBase
from buddysim.replay.schemes.uncompressed cimport uncompressed_fill, uncompressed_writeback
from buddysim.replay.sm.warp cimport MAX_WARPS

ORDER = 40

# States of a page.
cdef enum:
    UNKNOWN = 0           # not accessed yet: the initial state applies
    ON_HOST = -1
    NOT_MANAGED = -2      # outside all allocations of device memory
    MIGRATING = -3        # on the host; migrates with the current fault
    FAULT_PENDING = -4    # on the host; migrates with the open batch
    INITIAL_RESIDENT = 1  # resident since the start of the run, and not used since
    RESIDENT = 2          # this and above: resident, in the LRU list; arrival in ps = state - RESIDENT

# States of an eviction block.
cdef enum:
    NOT_IN_LRU = 0       # not used yet, or evicted
    IN_LRU = 1           # in the LRU list
    EVICTED_INITIAL = 2  # evicted before its first use

cdef enum:
    MAX_PENDING_FAULTS = 64  # fault blocks that a warp waits for; it does not wait for more
    FAULT_SHIFT = 5          # log2 of the entries of a fault block of 4 KiB, the granularity of the fault buffer

# A fault block for which an instruction of a warp waits.
cdef struct PendingFault:
    int64_t fault_block  # entry >> FAULT_SHIFT
    int64_t retry_ps     # time at which the fault is replayed
    int64_t expected_ps  # time from which the warp counts on the data
    int32_t accesses     # with max_in_flight: accesses of the warp to the block
    int32_t in_flight    # of these, not held back

# Consecutive pages with allocations of device memory.
cdef struct Span:
    int64_t first
    int64_t end
    int64_t blocks_below  # eviction blocks with managed pages below its first one

cdef struct UmState:
    int64_t n                     # pages
    int64_t capacity              # of device memory, in eviction blocks
    const Span* spans             # [n_spans]
    int64_t n_spans
    int64_t n_initial_blocks      # eviction blocks resident at the start
    int64_t n_initial_evicted     # of these, in address order: used or evicted
    int64_t n_spans_evicted       # spans whose blocks are all used or evicted
    int64_t resident              # eviction blocks
    int entries_shift             # log2 of the entries of a page
    int eviction_block_shift      # log2 of the pages of an eviction block
    bint lru_by_migration         # only migrations renew a block in the LRU list, not accesses
    bint serial                   # evictions, migrations and batches follow each other
    int pages_per_va_block
    int64_t fault_batch_ps
    int64_t replay_ps             # from the end of a batch until the data of a replayed access have come
    int max_batch_faults
    int64_t batch_start_ps
    int64_t batch_end_ps
    int batch_faults              # batched service: faults in the open batch; 0: no batch is open
    int batch_pages               # batched service: pages of these faults
    int64_t batches
    bint batched_service          # a batch is serviced when it starts, one VA block after the other
    int64_t* due_ps               # of the memory system
    int64_t replay_due_ps         # batched service: no pending fault is replayed before; NEVER: none is
    int64_t n_warps
    int64_t* batch                # [max_batch_faults], batched service: pages of the open batch
    int64_t last_migration_ps     # arrival of the page migrated last
    PendingFault* pending_faults  # [warps][MAX_PENDING_FAULTS]
    int8_t* n_pending_faults      # [warps]
    int64_t* replay_ready_ps      # [n], batched service: end of the latest batch that migrated the page and left it resident
    bint sm_replay                # an SM issues nothing while its faults are pending; it replays them when a batch ends
    int32_t max_in_flight         # sm_replay: accesses of an SM that wait for pages; 0: no limit
    int32_t* in_flight            # [sms], with max_in_flight: accesses that wait for pages
    int32_t* n_buffered_faults    # [sms], sm_replay: fault blocks pending for its warps
    int64_t* stall_start_ps       # [sms], sm_replay: first pending fault
    int64_t* replay_done_ps       # [sms], sm_replay: latest completed replay
    int64_t* resume_ps            # [warps], sm_replay: latest completed replay of the warp
    int8_t* has_data              # [n]: the page has been written, or is resident; NULL: all pages are transferred
    int32_t* newer                # LRU list of used blocks; block b has number b + 1, 0 is the sentinel
    int32_t* older
    int8_t* lru_state             # state of each eviction block
    int64_t* state                # [n]: state of each page
    int64_t faults
    int64_t prefetched            # pages
    int64_t evicted               # pages
    int64_t dirty_sectors         # dirty sectors of the L2, evicted with their pages


cdef inline int64_t eviction_block_index(const UmState* um, const Span* span, int64_t page) noexcept nogil:
    """Number of eviction blocks with managed pages below that of a page."""
    return span.blocks_below + (page >> um.eviction_block_shift) - (span.first >> um.eviction_block_shift)


cdef inline int64_t initial_state(const UmState* um, int64_t page) noexcept nogil:
    """Initial state of a page: resident if enough eviction blocks fit, in address order."""
    cdef int64_t low = 0, high = um.n_spans, middle
    while low < high:           # the first span that ends after the page
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
    """Makes an eviction block the most recently used one."""
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
    """Removes the least recently used eviction block from the order, and returns it."""
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
    """Evicts the least recently used block, with the lines of its pages; returns the end of the transfer."""
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
        evicted_ps = link_write(&m.link, &m.waits, <int64_t>ENTRY_BYTES << um.entries_shift, SCHEME_TRAFFIC, t)
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
        last_migration_ps = link_read(&m.link, &m.waits, <int64_t>ENTRY_BYTES << um.entries_shift, SCHEME_TRAFFIC, t)
    else:
        last_migration_ps = t
        um.has_data[page] = 1
    um.state[page] = RESIDENT + last_migration_ps
    um.last_migration_ps = max_i64(um.last_migration_ps, last_migration_ps)
    if um.serial:
        um.batch_end_ps = last_migration_ps


cdef inline int64_t join_batch(UmState* um, int64_t t) noexcept nogil:
    """Adds a fault at `t` to a batch that has not started, or to a new one; returns the end of the batch."""
    if t > um.batch_start_ps or um.batch_faults == um.max_batch_faults:
        um.batch_start_ps = max_i64(t, um.batch_end_ps)
        um.batch_end_ps = um.batch_start_ps + um.fault_batch_ps
        um.batch_faults = 0
        um.batches += 1
    um.batch_faults += 1
    return um.batch_end_ps


cdef inline void find_subtree(UmState* um, int64_t page, int64_t* first, int64_t* end) noexcept nogil:
    """Finds the largest subtree of which more than half is resident or pending, together with `page`; else the page alone."""
    cdef int64_t begin, stop, member, resident, state, size = 2
    first[0], end[0] = page, page + 1
    while size <= um.pages_per_va_block:
        begin = page / size * size
        stop = min_i64(begin + size, um.n)
        resident = 1
        for member in range(begin, stop):
            state = state_of(um, member)
            resident += state >= INITIAL_RESIDENT or (state == FAULT_PENDING and member != page)
        if 2 * resident > size:
            first[0], end[0] = begin, stop
        size *= 2


cdef inline void migrate_for_fault(MemorySystem* m, UmState* um, int64_t page, int64_t t) noexcept nogil:
    """Migrates a page, and the absent pages of the subtree that is prefetched with it.

    The subtree has at least as many resident pages, so none of the migrated pages evicts another.
    """
    cdef int64_t member, first, end, end_ps = join_batch(um, t)
    find_subtree(um, page, &first, &end)
    for member in range(first, end):
        if state_of(um, member) == ON_HOST:
            um.state[member] = MIGRATING
    um.faults += 1
    migrate_in(m, um, page, end_ps)
    for member in range(first, end):
        if um.state[member] == MIGRATING:
            migrate_in(m, um, member, end_ps)
            um.prefetched += 1


cdef int compare_pages(const void* first, const void* second) noexcept nogil:
    cdef int64_t a = (<const int64_t*>first)[0], b = (<const int64_t*>second)[0]
    return (a > b) - (a < b)


cdef inline int64_t service_due_ps(const UmState* um) noexcept nogil:
    """The open batch is serviced before the first event after this time; a batch without latency before its own end."""
    return um.batch_start_ps - (um.fault_batch_ps == 0) if um.batch_faults else NEVER


cdef inline void set_due(UmState* um) noexcept nogil:
    um.due_ps[0] = min_i64(service_due_ps(um), um.replay_due_ps - 1)


cdef void service_batch(MemorySystem* m) noexcept nogil:
    """Services the open batch, in address order: the faults of a VA block and its prefetches. All pages are usable at its end.

    Pages that later VA blocks of the batch evict are absent then; warps that wait for them fault again.
    """
    cdef UmState* um = <UmState*>m.scheme_state
    cdef int64_t* faulted_pages = um.batch
    cdef int64_t page, first, end, begin, stop
    cdef int i, k, next_fault = 0, n = um.batch_pages
    qsort(faulted_pages, n, sizeof(int64_t), compare_pages)
    um.batch_end_ps = um.batch_start_ps + um.fault_batch_ps
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
            if um.state[page] == NEVER:          # migrated by this batch, and still resident
                um.state[page] = RESIDENT + um.last_migration_ps
                um.replay_ready_ps[page] = um.last_migration_ps
        begin = stop


cdef inline int64_t add_to_batch(UmState* um, int64_t page, int64_t t) noexcept nogil:
    """Adds a fault on an absent page to the batch open at `t`, unless that is full; returns the time to replay it."""
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


cdef inline int32_t free_fault_slots(const UmState* um, int sm) noexcept nogil:
    return um.max_in_flight - um.in_flight[sm]


cdef inline int64_t fault_accesses(UmState* um, int64_t page, int accesses, int64_t t) noexcept nogil:
    """Adds the faults of accesses to a page, none if all are held back; returns the time to replay them."""
    cdef int64_t retry_ps = um.batch_start_ps + um.fault_batch_ps if um.batch_faults else max_i64(t, um.last_migration_ps)
    cdef int _
    for _ in range(accesses):
        retry_ps = add_to_batch(um, page, t)
    return retry_ps


cdef inline int64_t add_pending_fault(MemorySystem* m, UmState* um, uint32_t entry, int64_t t) noexcept nogil:
    """Adds a pending fault of the current warp, and a fault unless the open batch has it; returns the time to replay it.

    With max_in_flight, every access within the limit faults, even if its page is already migrating.
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
        faults[i].fault_block, faults[i].retry_ps, faults[i].expected_ps = fault_block, retry_ps, retry_ps
        um.replay_due_ps = min_i64(um.replay_due_ps, retry_ps)
        um.n_pending_faults[m.warp] = <int8_t>(n + (i == n))
        if um.max_in_flight:
            faults[i].accesses = 1 + (faults[i].accesses if i < n else 0)
            faults[i].in_flight = sent + (faults[i].in_flight if i < n else 0)
            um.in_flight[sm] += sent
        if um.sm_replay and i == n:
            um.stall_start_ps[sm] = min_i64(um.stall_start_ps[sm], t) if um.n_buffered_faults[sm] else t
            um.n_buffered_faults[sm] += 1
    set_due(um)
    return retry_ps


cdef int64_t access_batched(MemorySystem* m, uint32_t entry, int64_t t) noexcept nogil:
    """Time at which an access that arrives at `t` can use its page, or at which its warp replays the fault."""
    cdef UmState* um = <UmState*>m.scheme_state
    cdef int64_t page = entry >> um.entries_shift, state
    if allocation_of(m, entry).placement == HOST:
        return t
    while t > m.due_ps:
        m.on_due(m)
    state = state_of(um, page)
    if state < INITIAL_RESIDENT or um.max_in_flight and state - RESIDENT > t:
        return add_pending_fault(m, um, entry, t)
    if not um.lru_by_migration:
        if state == INITIAL_RESIDENT:
            um.state[page] = RESIDENT
        touch_block(um, page >> um.eviction_block_shift)
    return max_i64(t, um.state[page] - RESIDENT)


cdef inline int64_t page_of(const UmState* um, const PendingFault* fault) noexcept nogil:
    return fault.fault_block >> um.entries_shift - FAULT_SHIFT


cdef inline bint is_resident_at(const UmState* um, const PendingFault* fault, int64_t t) noexcept nogil:
    """Whether a held-back access finds its page resident at `t`, migrated by a batch that ended before the replay."""
    cdef int64_t state = um.state[page_of(um, fault)]
    return um.max_in_flight and state >= INITIAL_RESIDENT and state - RESIDENT <= t


cdef inline bint arrived_with_batch(const UmState* um, const PendingFault* fault, int64_t* served_ps) noexcept nogil:
    """Whether a batch has migrated the pending page and left it resident; `served_ps` becomes the end of that batch."""
    cdef int64_t last_migration_ps = um.replay_ready_ps[page_of(um, fault)]
    if last_migration_ps >= fault.retry_ps:
        served_ps[0] = last_migration_ps
        return True
    return False


cdef int64_t wake_warp(MemorySystem* m, int warp, bint at_end, int64_t t) noexcept nogil:
    """Time at which a warp that could issue at `t` resumes: its pages may arrive later, or may have been evicted again."""
    cdef UmState* um = <UmState*>m.scheme_state
    cdef PendingFault* faults
    cdef int i, n_remaining = 0, n = um.n_pending_faults[warp]
    cdef int64_t resume_ps = t, served_ps = 0
    if not n:
        return t
    faults = um.pending_faults + <int64_t>warp * MAX_PENDING_FAULTS
    for i in range(n):
        if faults[i].retry_ps <= t and arrived_with_batch(um, &faults[i], &served_ps):
            resume_ps = max_i64(resume_ps, served_ps + um.replay_ps)
            continue
        if at_end or faults[i].expected_ps <= t:            # a warp exits after all of its accesses
            resume_ps = max_i64(resume_ps, faults[i].retry_ps)
        faults[n_remaining] = faults[i]
        n_remaining += 1
    um.n_pending_faults[warp] = <int8_t>n_remaining
    return resume_ps


cdef inline void end_wait(UmState* um, int warp, const PendingFault* fault, int64_t served_ps, int64_t resume_ps) noexcept nogil:
    """Ends the wait of a warp and of its SM for a fault block whose page they have from `served_ps` on."""
    cdef int sm = warp / MAX_WARPS
    um.n_buffered_faults[sm] -= 1
    if um.max_in_flight:
        um.in_flight[sm] -= fault.in_flight
    um.replay_done_ps[sm] = max_i64(um.replay_done_ps[sm], served_ps)
    um.resume_ps[warp] = max_i64(um.resume_ps[warp], resume_ps)


cdef inline void fault_again(UmState* um, int sm, PendingFault* fault, int64_t t) noexcept nogil:
    """Replays a fault whose page is absent at `t`: after the batch serviced last has ended, it faults again."""
    cdef int sent
    if t < um.last_migration_ps:
        fault.retry_ps = um.last_migration_ps
    elif um.max_in_flight:
        sent = <int>min_i64(fault.accesses - fault.in_flight, free_fault_slots(um, sm))
        fault.in_flight += sent
        um.in_flight[sm] += sent
        fault.retry_ps = fault_accesses(um, page_of(um, fault), fault.in_flight, t)
    else:
        fault.retry_ps = add_to_batch(um, page_of(um, fault), t)


cdef int64_t replay_faults(UmState* um, int warp, int64_t t) noexcept nogil:
    """Replays the pending faults of a warp that are due at `t`; returns the earliest time of a later one.

    By SM, faults whose pages have come leave the list; else their warp finds them at its next issue.
    """
    cdef PendingFault* faults = um.pending_faults + <int64_t>warp * MAX_PENDING_FAULTS
    cdef int i, n_remaining = 0
    cdef int64_t next_ps = NEVER, served_ps = 0
    for i in range(um.n_pending_faults[warp]):
        if faults[i].retry_ps > t:
            next_ps = min_i64(next_ps, faults[i].retry_ps)
        elif arrived_with_batch(um, &faults[i], &served_ps):
            if um.sm_replay:
                end_wait(um, warp, &faults[i], served_ps, served_ps + um.replay_ps)
                continue
        elif is_resident_at(um, &faults[i], t):
            end_wait(um, warp, &faults[i], t, t)
            continue
        else:
            fault_again(um, warp / MAX_WARPS, &faults[i], t)
            next_ps = min_i64(next_ps, faults[i].retry_ps)
        faults[n_remaining] = faults[i]
        n_remaining += 1
    um.n_pending_faults[warp] = <int8_t>n_remaining
    return next_ps


cdef void replay_due_faults(UmState* um) noexcept nogil:
    """Replays the pending faults of all warps that are due first."""
    cdef int warp
    cdef int64_t t = um.replay_due_ps, next_ps = NEVER
    for warp in range(um.n_warps):
        if um.n_pending_faults[warp]:
            next_ps = min_i64(next_ps, replay_faults(um, warp, t))
    um.replay_due_ps = next_ps


cdef void serve_or_replay(MemorySystem* m) noexcept nogil:
    """Services the open batch, or replays the faults that are due first, which may join that batch."""
    cdef UmState* um = <UmState*>m.scheme_state
    if service_due_ps(um) < um.replay_due_ps:
        service_batch(m)
    else:
        replay_due_faults(um)
    set_due(um)


cdef int64_t wake_sm(MemorySystem* m, int warp, bint at_end, int64_t t) noexcept nogil:
    """Time at which a warp that could issue at `t` resumes: after all faults of its SM that are known by then.

    It also waits while the SM has reached max_in_flight.
    """
    cdef UmState* um = <UmState*>m.scheme_state
    cdef int sm = warp / MAX_WARPS, sm_warp, i
    cdef int64_t next_ps = NEVER
    cdef bint full = um.max_in_flight and not free_fault_slots(um, sm)
    cdef const PendingFault* faults
    if um.n_buffered_faults[sm] and (um.n_pending_faults[warp] or not at_end and (t >= um.stall_start_ps[sm] or full)):
        for sm_warp in range(sm * MAX_WARPS, (sm + 1) * MAX_WARPS):
            faults = um.pending_faults + <int64_t>sm_warp * MAX_PENDING_FAULTS
            for i in range(um.n_pending_faults[sm_warp]):
                next_ps = min_i64(next_ps, faults[i].retry_ps)
        return max_i64(t, next_ps)
    return max_i64(t, um.resume_ps[warp] if at_end else max_i64(um.resume_ps[warp], um.replay_done_ps[sm]))


cdef void mark_written(MemorySystem* m, uint32_t first_entry, uint32_t end_entry) noexcept nogil:
    cdef UmState* um = <UmState*>m.scheme_state
    cdef int64_t page
    for page in range(first_entry >> um.entries_shift, (<int64_t>end_entry - 1 >> um.entries_shift) + 1):
        um.has_data[page] = 1


cdef int64_t access(MemorySystem* m, uint32_t entry, int64_t t) noexcept nogil:
    """Time at which an access that arrives at `t` can use its page."""
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
    """Whether the L2 may hold an entry: a memcpy or memset writes a page where it lies, and only resident pages have lines."""
    cdef UmState* um = <UmState*>m.scheme_state
    return allocation_of(m, entry).placement == HOST or state_of(um, entry >> um.entries_shift) >= INITIAL_RESIDENT


class UmConfig(Section):
    """Unified Memory with oversubscription: the section `[um]` of a machine file."""

    RULES = (
        "`um.page_size`, `um.va_block_size` and `um.eviction_granularity` are powers of two (or 0 B, the last).",
        "`um.va_block_size` is at least `um.page_size`.",
        "`um.eviction_granularity` is 0 B, `um.page_size`, or at least `um.va_block_size`; with "
        "`um.fault_service = \"batched\"`, at least `um.va_block_size`.",
        "`um.fault_replay_scope = \"sm\"` needs `um.fault_service = \"batched\"`; a limit in "
        "`um.max_pending_faults_per_sm` needs `um.fault_replay_scope = \"sm\"`.",
    )

    oversubscription: Annotated[float, fields.number(0.0, 0.999)] = fields.key(
        0.5,
        "fraction of the footprint that exceeds device memory",
        "Choukse et al., Buddy Compression (arXiv 1903.02596), Fig. 12: up to half of the footprint does not fit",
    )
    page_size: Annotated[int, fields.size("4 KiB", "2 MiB")] = fields.key(
        64 * 1024,
        "size of a page, the unit of migration",
        "leaf of the driver's prefetch tree: Ganguly et al., ISCA 2019",
    )
    va_block_size: Annotated[int, fields.size("4 KiB", "1 GiB")] = fields.key(
        2 * 1024**2,
        "size of a VA block, whose pages are under one prefetch tree",
        "root of the driver's prefetch tree: Ganguly et al., ISCA 2019",
    )
    eviction_granularity: Annotated[int, fields.size("0 B", "1 GiB")] = fields.key(
        0,
        "size of the aligned group of pages for which device memory is allocated, and evicted, at once; 0 B: one page",
        "assumed: pages are evicted one by one",
    )
    capacity: Annotated[int, fields.size("0 B", "1 TiB")] = fields.key(
        0,
        "device memory for pages; 0 B: the footprint less um.oversubscription",
        "the fraction um.oversubscription is used",
    )
    initial_location: Annotated[str, fields.one_of("device", "host")] = fields.key(
        "device",
        "location of pages before the first kernel; device: as many as fit are resident, the lowest first; "
        "host: none is",
        "assumed: data are in device memory when a run starts, as far as they fit",
    )
    eviction_order: Annotated[str, fields.one_of("lru_access", "lru_migration")] = fields.key(
        "lru_access",
        "order of evictions; lru_access: the group least recently accessed or migrated to; "
        "lru_migration: the group least recently migrated to",
        "assumed: least recently used, with every access counted",
    )
    serialize_transfers: Switch = fields.key(
        False,
        "overlap of migrations; true: a migration waits for its evictions, and the next batch for both; "
        "false: they overlap",
        "assumed: the link carries both directions at once",
    )
    fault_batch_latency: Duration = fields.key(
        parse_time("30 us"),
        "time to service one fault batch",
        "assumed: middle of the 20 to 50 us that Zheng et al., HPCA 2016, and later work report",
    )
    max_batch_faults: Annotated[int, fields.count(1, 1_000_000)] = fields.key(
        256,
        "maximum number of faults in a fault batch",
        "default batch of NVIDIA's open kernel driver (uvm_perf_fault_batch_count)",
    )
    fault_service: Annotated[str, fields.one_of("immediate", "batched")] = fields.key(
        "immediate",
        "service of faults; immediate: each as it arrives; batched: those of a batch when it starts, in address "
        "order, one VA block at a time, and warps resume when the batch ends",
        "assumed: a fault's page is serviced as soon as its batch has been",
    )
    fault_replay_scope: Annotated[str, fields.one_of("warp", "sm")] = fields.key(
        "warp",
        "warps that stop at a fault and replay it; warp: the faulting one; sm: all of its SM, which issues "
        "nothing until its faults are serviced and replays them when a batch ends",
        "assumed: other warps of the SM go on",
    )
    max_pending_faults_per_sm: Annotated[int, fields.count(0, 1_000_000)] = fields.key(
        0,
        "maximum accesses to lines of an SM that wait for pages; at this number the SM issues nothing; "
        "0: unlimited, with one fault for each 4 KiB that a warp accesses",
        "assumed: no limit",
    )
    zero_fill_untouched: Switch = fields.key(
        False,
        "first migration of pages that no memcpy, memset or kernel has written; true: they are zero-filled on "
        "the GPU; false: they are copied from the host",
        "assumed: every page is migrated",
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
    SECTIONS = {"um": UmConfig}
    SUMMARY = "Unified Memory, pages migrating on fault into device memory that is too small"
    assumptions = {
        "um": "Unified Memory is a model (fault batches, tree prefetch, LRU eviction), not the hardware the paper measured; "
        "`um.initial_location` says which pages are resident at first: the lowest ones, as many as fit, or none",
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
    ENGINE_COUNTERS = {
        "utilization.um_fault_handling": "fraction: Utilization of the handling of Unified Memory fault batches, 0 to 1 of its "
        "peak over the simulated time.",
    }
    SHOWN = (
        ShownRow("unified memory", "unified memory", "title", (),
                 "Section with page faults and migrations under the scheme `unified-memory`."),
        ShownRow("unified memory", "page faults", "count", ("um.page_faults",),
                 "Pages that an SM accesses while they are not resident."),
        ShownRow("unified memory", "pages prefetched", "count", ("um.pages_prefetched",),
                 "Pages that migrate together with faulted ones."),
        ShownRow("unified memory", "pages evicted", "count", ("um.pages_evicted",),
                 "Pages that migrate back to the host to make space."),
        ShownRow("link traffic", "migration in", "bytes", ("link.migration_in_bytes",),
                 "Bytes of pages that migrate to the GPU."),
        ShownRow("link traffic", "migration out", "bytes", ("link.migration_out_bytes",),
                 "Bytes of pages that migrate back to the host."),
        ShownRow("bottleneck", "faults", "resource", ("utilization.um_fault_handling",),
                 "Handling of fault batches of Unified Memory."),
    )
    cdef UmState config         # parameters, copied to the state of a run
    cdef int64_t warps          # of the machine
    cdef bint zero_fill
    cdef list lazy_arrays       # states of pages, blocks and faults

    def __cinit__(self):
        self.fill, self.writeback = uncompressed_fill, uncompressed_writeback
        self.on_access, self.may_cache = access, may_cache
        self.lazy_arrays = []

    def configure(self, machine, allocated_entries, capacity_bytes):
        cdef int64_t fitting = int(allocated_entries * (1 - Fraction(str(machine.um.oversubscription))))
        self.config.entries_shift = (machine.um.page_size // ENTRY_BYTES).bit_length() - 1
        self.config.eviction_block_shift = ((machine.um.eviction_granularity or machine.um.page_size)
                                            // machine.um.page_size).bit_length() - 1
        if capacity_bytes is not None or machine.um.capacity:
            fitting = (machine.um.capacity if capacity_bytes is None else capacity_bytes) // ENTRY_BYTES
        self.config.capacity = max_i64(1, fitting >> self.config.entries_shift + self.config.eviction_block_shift)
        self.config.lru_by_migration = machine.um.eviction_order == "lru_migration"
        self.config.serial = machine.um.serialize_transfers
        self.config.n_initial_blocks = self.config.capacity if machine.um.initial_location == "device" else 0
        self.config.pages_per_va_block = machine.um.va_block_size // machine.um.page_size
        self.config.fault_batch_ps = machine.ps(machine.um.fault_batch_latency)
        self.config.replay_ps = machine.ps(machine.dram.load_to_use) - machine.ps(machine.l2.load_to_use) // 2
        self.config.max_batch_faults = machine.um.max_batch_faults
        self.config.batched_service, self.zero_fill = machine.um.fault_service == "batched", machine.um.zero_fill_untouched
        self.warps = machine.sm.count * MAX_WARPS
        if self.config.batched_service:
            self.config.sm_replay = machine.um.fault_replay_scope == "sm"
            self.config.max_in_flight = machine.um.max_pending_faults_per_sm
            self.on_access, self.on_wake = access_batched, wake_sm if self.config.sm_replay else wake_warp
            self.on_due = serve_or_replay
        if self.zero_fill:
            self.on_written = mark_written

    def device_bytes(self, occupied_bytes):
        entries_shift = self.config.entries_shift + self.config.eviction_block_shift
        return min(occupied_bytes, (self.config.capacity << entries_shift) * ENTRY_BYTES)

    cdef void* lazy_array(self, int64_t n, int64_t size) except NULL:
        """Array of zeros that takes no memory before it is accessed, and lives as long as the scheme."""
        cdef uint8_t[::1] array = lazy_zeros(n * size)
        self.lazy_arrays.append(array)
        return &array[0]

    cdef int prepare(self, MemorySystem* m, Arena* arena) except -1:
        """Allocates the state of the pages; the eviction blocks of lowest address are resident, if any."""
        cdef UmState* um = <UmState*>arena_zeroed(arena, 1, sizeof(UmState))
        cdef int64_t eviction_blocks, n_sms = self.warps // MAX_WARPS
        um[0] = self.config
        um.n = (m.n_entries >> um.entries_shift) + 1
        um.batch_start_ps, um.due_ps, um.replay_due_ps, um.n_warps = -1, &m.due_ps, NEVER, self.warps
        um.state = <int64_t*>self.lazy_array(um.n, sizeof(int64_t))
        eviction_blocks = (um.n - 1 >> um.eviction_block_shift) + 1
        um.newer = <int32_t*>self.lazy_array(eviction_blocks + 1, sizeof(int32_t))
        um.older = <int32_t*>self.lazy_array(eviction_blocks + 1, sizeof(int32_t))
        um.lru_state = <int8_t*>self.lazy_array(eviction_blocks, sizeof(int8_t))
        if um.batched_service:
            um.pending_faults = <PendingFault*>self.lazy_array(self.warps * MAX_PENDING_FAULTS, sizeof(PendingFault))
            um.n_pending_faults = <int8_t*>self.lazy_array(self.warps, sizeof(int8_t))
            um.batch = <int64_t*>self.lazy_array(um.max_batch_faults, sizeof(int64_t))
            um.replay_ready_ps = <int64_t*>self.lazy_array(um.n, sizeof(int64_t))
            um.in_flight = <int32_t*>arena_zeroed(arena, n_sms, sizeof(int32_t))
            um.n_buffered_faults = <int32_t*>arena_zeroed(arena, n_sms, sizeof(int32_t))
            um.stall_start_ps = <int64_t*>arena_zeroed(arena, n_sms, sizeof(int64_t))
            um.replay_done_ps = <int64_t*>arena_zeroed(arena, n_sms, sizeof(int64_t))
            um.resume_ps = <int64_t*>arena_zeroed(arena, self.warps, sizeof(int64_t))
        if self.zero_fill:
            um.has_data = <int8_t*>self.lazy_array(um.n, sizeof(int8_t))
        um.n_initial_blocks = min_i64(um.n_initial_blocks, self.find_spans(m, um, arena))
        um.resident = um.n_initial_blocks
        m.scheme_state = um
        return 0

    cdef int64_t find_spans(self, const MemorySystem* m, UmState* um, Arena* arena) except -1:
        """Finds the spans of pages with allocations of device memory; returns the number of their eviction blocks."""
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
                if eviction_blocks and first >> um.eviction_block_shift == last_block:      # the span below ends in this block
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
            "link.migration_in_bytes": m.link.read_payload[<int>SCHEME_TRAFFIC],
            "link.migration_out_bytes": m.link.write_payload[<int>SCHEME_TRAFFIC],
        }
