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
in its turns (`wake_by_block`), and faults anew where the page has been evicted meanwhile. With `um.fault_replay_scope` "sm" the whole SM
waits: it issues nothing until all that faulted there has found its page (`wake_by_sm`). With `um.max_pending_faults_per_sm` it has so many
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
from buddysim.replay.engine.dram cimport larger
from buddysim.replay.engine.events cimport NEVER, smaller
from buddysim.replay.engine.kinds cimport ENTRY_BYTES, HOST, SCHEME_TRAFFIC
from buddysim.replay.engine.memory cimport (
    MemorySystem, Region, lines_leave, link_bytes, link_cost, link_read, link_write, region_of,
)
from buddysim.replay.engine.port cimport FINE_BITS
from buddysim.replay.engine.scheme cimport SchemeBase
from buddysim.replay.engine.sm cimport MAX_WARPS
from buddysim.replay.engine.uncompressed cimport uncompressed_fill, uncompressed_writeback

ORDER = 40

cdef enum:                      # states of a page
    UNSEEN = 0                  # not looked at yet: that of the beginning
    AWAY = -1                   # in host memory
    NOT_MANAGED = -2            # no allocation of device memory lies there
    CALLED = -3                 # in host memory, to be brought with the fault at hand
    FAULTED = -4                # in host memory, to be brought with the batch that is open
    FIRST = 1                   # resident from the beginning on, and not used since
    USED = 2                    # and all above: resident, of a frame of the list; when it came, in ps, added

cdef enum:                      # states of a frame
    UNLISTED = 0                # not used yet, or evicted
    LISTED = 1                  # of the list
    PASSED = 2                  # evicted, though nothing had used it

cdef enum:
    MOST_AWAITED = 64           # places that a warp waits for at once, beyond which it goes on without
    FAULT_SHIFT = 5             # log2 of the entries of 4 KiB, which is how the fault buffer tells addresses

cdef struct Awaited:            # 4 KiB that an instruction of a warp waits for
    int64_t place               # entry >> FAULT_SHIFT
    int64_t until_ps            # the warp has been told that it comes then: time to look again
    int32_t asked               # with a limit of the SM's faults: accesses of the warp there
    int32_t in_flight           # of these, not held back

cdef struct Span:               # pages in which allocations of device memory lie, one behind the other
    int64_t first
    int64_t end
    int64_t before              # frames that have such pages below its own

cdef struct Pages:
    int64_t n
    int64_t capacity            # frames
    const Span* spans
    int64_t n_spans
    int64_t first_frames        # frames resident at first
    int64_t passed              # of these, in order: none of them is unused and resident any more
    int64_t passed_spans        # spans of which that is true of all frames
    int64_t resident            # frames
    int entries_shift           # log2 of entries per page
    int frame_shift             # log2 of pages per frame
    bint by_fault               # a frame is as recently used as the last page that came into it
    bint serial                 # evictions, migrations and batches follow each other
    int pages_per_block         # pages under one prefetch tree
    int64_t page_ps             # of the link's time
    int64_t fault_ps
    int fault_batch             # most faults of a batch
    int64_t batch_start_ps
    int64_t batch_end_ps
    int batch_faults            # by block: 0 where no batch is open
    int batch_pages             # by block: how many pages they are in
    int64_t batches
    bint by_block               # a batch is served when it starts, block by block
    int64_t* batch              # [fault_batch]: by block, the pages of the batch that is open
    int64_t came_ps             # when the page migrated last can be used
    Awaited* awaited            # [warps * MOST_AWAITED]
    int8_t* n_awaited           # [warps]
    int64_t* replayed_ps        # [n]: by block, when the latest batch ended that has brought the page and left it there
    bint by_sm                  # an SM issues nothing while what faulted there is tried again, each time that a batch ends
    int32_t most_in_flight      # by SM: most accesses in flight that wait for pages; 0: no limit
    int32_t* in_flight          # [SMs]: with a limit, how many are
    int32_t* buffered           # [SMs]: by SM, places that its warps await
    int64_t* stalled_ps         # [SMs]: by SM, since when there are any
    int64_t* emptied_ps         # [SMs]: by SM, when the last of them that has come was there
    int64_t* go_on_ps           # [warps]: by SM, the same of a warp's
    int8_t* exists              # [n]: of each page, that it has been written, or in device memory; NULL: all are moved
    int32_t* newer              # LRU list over the used frames, in which frame f has the number f + 1; 0 is the sentinel
    int32_t* older
    int8_t* listed              # state of each frame
    int64_t* state
    int64_t faults
    int64_t prefetched
    int64_t evicted
    int64_t dirty_sectors       # of the L2, that left it with their pages


cdef inline int64_t frame_number(const Pages* pages, const Span* span, int64_t page) noexcept nogil:
    """How many frames with managed pages lie below that of a page."""
    return span.before + (page >> pages.frame_shift) - (span.first >> pages.frame_shift)


cdef inline int64_t first_state(const Pages* pages, int64_t page) noexcept nogil:
    """What a page is at the beginning: resident if few enough frames of lower addresses are managed."""
    cdef int64_t low = 0, high = pages.n_spans, middle
    while low < high:           # the first span that ends behind it
        middle = (low + high) // 2
        if pages.spans[middle].end <= page:
            low = middle + 1
        else:
            high = middle
    if low == pages.n_spans or page < pages.spans[low].first:
        return NOT_MANAGED
    return FIRST if frame_number(pages, &pages.spans[low], page) < pages.first_frames else AWAY


cdef inline int64_t state_of(Pages* pages, int64_t page) noexcept nogil:
    if pages.state[page] == UNSEEN:
        pages.state[page] = first_state(pages, page)
    return pages.state[page]


cdef inline void unlink_frame(Pages* pages, int64_t frame) noexcept nogil:
    cdef int64_t number = frame + 1
    pages.newer[pages.older[number]] = pages.newer[number]
    pages.older[pages.newer[number]] = pages.older[number]


cdef inline void make_newest(Pages* pages, int64_t frame) noexcept nogil:
    """The frame is the most recently used one."""
    cdef int32_t number = <int32_t>(frame + 1), newest
    if pages.listed[frame] == LISTED:
        unlink_frame(pages, frame)
    pages.listed[frame] = LISTED
    newest = pages.older[0]
    pages.older[number] = newest
    pages.newer[number] = 0
    pages.newer[newest] = number
    pages.older[0] = number


cdef inline int64_t take_oldest(Pages* pages) noexcept nogil:
    """The frame used the longest time ago; it is in no list any more."""
    cdef int64_t frame
    cdef const Span* span
    while pages.passed < pages.first_frames:
        span = &pages.spans[pages.passed_spans]
        if frame_number(pages, span, span.end - 1) < pages.passed:
            pages.passed_spans += 1
            continue
        frame = (span.first >> pages.frame_shift) + pages.passed - span.before
        pages.passed += 1
        if pages.listed[frame] == UNLISTED:
            pages.listed[frame] = PASSED
            return frame
    frame = pages.newer[0] - 1
    unlink_frame(pages, frame)
    pages.listed[frame] = PASSED
    return frame


cdef inline int64_t evict_oldest(MemorySystem* m, Pages* pages, int64_t t) noexcept nogil:
    """Sends the pages of the frame used the longest time ago back, and their lines with them; when they have gone."""
    cdef int64_t frame = take_oldest(pages), page, first_entry, entries, gone_ps = t
    for page in range(frame << pages.frame_shift, smaller(pages.n, frame + 1 << pages.frame_shift)):
        if state_of(pages, page) < FIRST:
            continue
        first_entry = page << pages.entries_shift
        entries = smaller(m.n_entries - first_entry, 1 << pages.entries_shift)
        pages.state[page] = AWAY
        pages.evicted += 1
        if pages.exists != NULL:
            pages.exists[page] = 1
        pages.dirty_sectors += lines_leave(m, <uint32_t>first_entry, <uint32_t>entries)
        gone_ps = link_write(m, <int64_t>ENTRY_BYTES << pages.entries_shift, SCHEME_TRAFFIC, t) + pages.page_ps
    pages.resident -= 1
    return gone_ps


cdef inline void migrate_in(MemorySystem* m, Pages* pages, int64_t page, int64_t t) noexcept nogil:
    cdef int64_t frame = page >> pages.frame_shift, gone_ps, came_ps
    if pages.serial:
        t = pages.batch_end_ps
    if pages.listed[frame] != LISTED:
        if pages.resident == pages.capacity:
            gone_ps = evict_oldest(m, pages, t)
            if pages.serial:
                t = gone_ps
        pages.resident += 1
    make_newest(pages, frame)
    if pages.exists == NULL or pages.exists[page]:
        came_ps = link_read(m, <int64_t>ENTRY_BYTES << pages.entries_shift, SCHEME_TRAFFIC, t)
    else:
        came_ps = t
        pages.exists[page] = 1
    pages.state[page] = USED + came_ps
    pages.came_ps = larger(pages.came_ps, came_ps)
    if pages.serial:
        pages.batch_end_ps = came_ps


cdef inline int64_t join_batch(Pages* pages, int64_t t) noexcept nogil:
    """When the batch ends that handles a fault at `t`: one that has not begun yet, or a new one."""
    if t > pages.batch_start_ps or pages.batch_faults == pages.fault_batch:
        pages.batch_start_ps = larger(t, pages.batch_end_ps)
        pages.batch_end_ps = pages.batch_start_ps + pages.fault_ps
        pages.batch_faults = 0
        pages.batches += 1
    pages.batch_faults += 1
    return pages.batch_end_ps


cdef inline void find_subtree(Pages* pages, int64_t page, int64_t* first, int64_t* end) noexcept nogil:
    """The largest subtree of which more than half is resident with `page`, or faulted; else the page alone."""
    cdef int64_t begin, stop, other, resident, state, size = 2
    first[0], end[0] = page, page + 1
    while size <= pages.pages_per_block:
        begin = page / size * size
        stop = smaller(begin + size, pages.n)
        resident = 1
        for other in range(begin, stop):
            state = state_of(pages, other)
            resident += state >= FIRST or (state == FAULTED and other != page)
        if 2 * resident > size:
            first[0], end[0] = begin, stop
        size *= 2


cdef inline void fault(MemorySystem* m, Pages* pages, int64_t page, int64_t t) noexcept nogil:
    """Migrates a page in, and what the tree prefetches with it: what is absent of the subtree now.

    These are at most as many pages as are resident in the subtree, so that none of them evicts another.
    """
    cdef int64_t other, first, end, end_ps = join_batch(pages, t)
    find_subtree(pages, page, &first, &end)
    for other in range(first, end):
        if state_of(pages, other) == AWAY:
            pages.state[other] = CALLED
    pages.faults += 1
    migrate_in(m, pages, page, end_ps)
    for other in range(first, end):
        if pages.state[other] == CALLED:
            migrate_in(m, pages, other, end_ps)
            pages.prefetched += 1


cdef int order_of_pages(const void* one, const void* other) noexcept nogil:
    cdef int64_t a = (<const int64_t*>one)[0], b = (<const int64_t*>other)[0]
    return (a > b) - (a < b)


cdef void serve_batch(MemorySystem* m, Pages* pages) noexcept nogil:
    """Serves the open batch: in the order of addresses, what faulted of a block and what the tree adds. All can be used at its end.

    What later blocks of the batch evict again is not there then: who waits for it will fault anew.
    """
    cdef int64_t* called = pages.batch
    cdef int64_t page, first, end, begin, stop
    cdef int i, k, past = 0, n = pages.batch_pages
    qsort(called, n, sizeof(int64_t), order_of_pages)
    pages.batch_end_ps = larger(pages.batch_start_ps + pages.fault_ps, m.now_ps)
    pages.came_ps = pages.batch_end_ps
    pages.batch_faults = pages.batch_pages = 0
    while past < n:
        i = past
        begin = called[i] / pages.pages_per_block * pages.pages_per_block
        stop = smaller(begin + pages.pages_per_block, pages.n)
        while past < n and called[past] < stop:
            past += 1
        for k in range(i, past):
            find_subtree(pages, called[k], &first, &end)
            for page in range(first, end):
                if pages.state[page] == AWAY:
                    pages.state[page] = CALLED
        for k in range(i, past):
            migrate_in(m, pages, called[k], pages.batch_end_ps)
            pages.state[called[k]] = NEVER
        for page in range(begin, stop):
            if pages.state[page] == CALLED:
                migrate_in(m, pages, page, pages.batch_end_ps)
                pages.state[page] = NEVER
                pages.prefetched += 1
    begin = -1
    for k in range(n):
        if called[k] < begin:
            continue
        begin = called[k] / pages.pages_per_block * pages.pages_per_block
        stop = smaller(begin + pages.pages_per_block, pages.n)
        for page in range(begin, stop):
            if pages.state[page] == NEVER:          # it came with this batch, and is still there
                pages.state[page] = USED + pages.came_ps
                pages.replayed_ps[page] = pages.came_ps
        begin = stop


cdef inline int64_t fault_for_batch(Pages* pages, int64_t page, int64_t t) noexcept nogil:
    """A fault in an absent page, for the batch that is open at `t`, unless that is full; returns when it is time to look again."""
    if pages.batch_faults == pages.fault_batch:
        return pages.batch_start_ps + pages.fault_ps
    if not pages.batch_faults:
        pages.batch_start_ps = larger(t, pages.batch_end_ps)
        pages.batches += 1
    if pages.state[page] != FAULTED:
        pages.batch[pages.batch_pages] = page
        pages.batch_pages += 1
        pages.state[page] = FAULTED
    pages.batch_faults += 1
    pages.faults += 1
    return pages.batch_start_ps + pages.fault_ps


cdef inline void serve_what_is_due(MemorySystem* m, Pages* pages, int64_t t) noexcept nogil:
    if pages.batch_faults and t > pages.batch_start_ps:
        serve_batch(m, pages)


cdef inline int32_t room_in_flight(const Pages* pages, int sm) noexcept nogil:
    return pages.most_in_flight - pages.in_flight[sm]


cdef inline int64_t fault_each(Pages* pages, int64_t page, int accesses, int64_t t) noexcept nogil:
    """Faults of so many accesses to a page, none if all are held back; returns when it is time to look again."""
    cdef int64_t until_ps = pages.batch_start_ps + pages.fault_ps if pages.batch_faults else larger(t, pages.came_ps)
    cdef int _
    for _ in range(accesses):
        until_ps = fault_for_batch(pages, page, t)
    return until_ps


cdef inline int64_t await_place(MemorySystem* m, Pages* pages, uint32_t entry, int64_t t) noexcept nogil:
    """A fault, unless the open batch has one of this warp at this place; returns when it is time to look again.

    With a limit every access faults for which there is room, also where the page is on its way already.
    """
    cdef int64_t place = entry >> FAULT_SHIFT, page = entry >> pages.entries_shift, until_ps
    cdef Awaited* own = pages.awaited + <int64_t>m.warp * MOST_AWAITED
    cdef int i = 0, n = pages.n_awaited[m.warp], sm = m.warp / MAX_WARPS, sent = 0
    while i < n and own[i].place != place:
        i += 1
    if pages.most_in_flight:
        sent = room_in_flight(pages, sm) > 0
        if pages.state[page] >= FIRST:
            until_ps = pages.state[page] - USED
        else:
            until_ps = fault_each(pages, page, sent, t)
    elif i < n and pages.state[page] == FAULTED:
        until_ps = pages.batch_start_ps + pages.fault_ps
    else:
        until_ps = fault_for_batch(pages, page, t)
    if i < MOST_AWAITED:
        own[i].place, own[i].until_ps = place, until_ps
        pages.n_awaited[m.warp] = <int8_t>(n + (i == n))
        if pages.most_in_flight:
            own[i].asked = 1 + (own[i].asked if i < n else 0)
            own[i].in_flight = sent + (own[i].in_flight if i < n else 0)
            pages.in_flight[sm] += sent
        if pages.by_sm and i == n:
            pages.stalled_ps[sm] = smaller(pages.stalled_ps[sm], t) if pages.buffered[sm] else t
            pages.buffered[sm] += 1
    return until_ps


cdef int64_t access_by_block(MemorySystem* m, uint32_t entry, int64_t t) noexcept nogil:
    """When the page of an entry can be used by an access that comes at `t`; or when its warp has to look again."""
    cdef Pages* pages = <Pages*>m.scheme_state
    cdef int64_t page = entry >> pages.entries_shift, state
    if region_of(m, entry).placement == HOST:
        return t
    serve_what_is_due(m, pages, t)
    state = state_of(pages, page)
    if state < FIRST or pages.most_in_flight and state - USED > t:
        return await_place(m, pages, entry, t)
    if not pages.by_fault:
        if state == FIRST:
            pages.state[page] = USED
        make_newest(pages, page >> pages.frame_shift)
    return larger(t, pages.state[page] - USED)


cdef inline bint is_there(const Pages* pages, const Awaited* awaited, int64_t t, int64_t* go_on_ps) noexcept nogil:
    """Whether what was held back finds its page at `t`: a batch has brought it that ended before it was time to look again."""
    cdef int64_t state = pages.state[awaited.place >> pages.entries_shift - FAULT_SHIFT]
    if pages.most_in_flight and state >= FIRST and state - USED <= t:
        go_on_ps[0] = larger(go_on_ps[0], t)
        return True
    return False


cdef inline bint has_come(const Pages* pages, const Awaited* awaited, int64_t* go_on_ps) noexcept nogil:
    """Whether the page that is awaited came with a batch and stayed; then who waits can go on at `go_on_ps`, when it ended."""
    cdef int64_t came_ps = pages.replayed_ps[awaited.place >> pages.entries_shift - FAULT_SHIFT]
    if came_ps >= awaited.until_ps:
        go_on_ps[0] = larger(go_on_ps[0], came_ps)
        return True
    return False


cdef int64_t wake_by_block(MemorySystem* m, int warp, bint at_end, int64_t t) noexcept nogil:
    """When a warp whose turn comes at `t` can go on: what it waits for may have come later, or gone again before it was used."""
    cdef Pages* pages = <Pages*>m.scheme_state
    cdef Awaited* own
    cdef int i, kept = 0, n = pages.n_awaited[warp]
    cdef int64_t go_on_ps = t
    if not n:
        return t
    own = pages.awaited + <int64_t>warp * MOST_AWAITED
    serve_what_is_due(m, pages, t)
    for i in range(n):
        if own[i].until_ps <= t:
            if has_come(pages, &own[i], &go_on_ps):
                continue
            own[i].until_ps = fault_for_batch(pages, own[i].place >> pages.entries_shift - FAULT_SHIFT, t)
            go_on_ps = larger(go_on_ps, own[i].until_ps)
        elif at_end:            # a warp ends with all its accesses, whichever it waits for otherwise
            go_on_ps = larger(go_on_ps, own[i].until_ps)
        own[kept] = own[i]
        kept += 1
    pages.n_awaited[warp] = <int8_t>kept
    return go_on_ps


cdef int64_t try_again(Pages* pages, int warp, int64_t t) noexcept nogil:
    """A warp of an SM looks again for what it awaits; returns when it has to do so next, at the earliest."""
    cdef Awaited* own = pages.awaited + <int64_t>warp * MOST_AWAITED
    cdef int i, sent, kept = 0, sm = warp / MAX_WARPS
    cdef int64_t next_ps = NEVER
    for i in range(pages.n_awaited[warp]):
        if own[i].until_ps <= t:
            if has_come(pages, &own[i], &pages.go_on_ps[warp]) or is_there(pages, &own[i], t, &pages.go_on_ps[warp]):
                pages.buffered[sm] -= 1
                if pages.most_in_flight:
                    pages.in_flight[sm] -= own[i].in_flight
                pages.emptied_ps[sm] = larger(pages.emptied_ps[sm], pages.go_on_ps[warp])
                continue
            if t < pages.came_ps:       # faults anew when that batch has ended
                own[i].until_ps = pages.came_ps
            elif pages.most_in_flight:
                sent = <int>smaller(own[i].asked - own[i].in_flight, room_in_flight(pages, sm))
                own[i].in_flight += sent
                pages.in_flight[sm] += sent
                own[i].until_ps = fault_each(
                    pages, own[i].place >> pages.entries_shift - FAULT_SHIFT, own[i].in_flight, t
                )
            else:
                own[i].until_ps = fault_for_batch(pages, own[i].place >> pages.entries_shift - FAULT_SHIFT, t)
        next_ps = smaller(next_ps, own[i].until_ps)
        own[kept] = own[i]
        kept += 1
    pages.n_awaited[warp] = <int8_t>kept
    return next_ps


cdef int64_t wake_by_sm(MemorySystem* m, int warp, bint at_end, int64_t t) noexcept nogil:
    """When a warp whose turn comes at `t` can go on: not while anything that faulted on its SM, and was known then, is awaited.

    Nor while the SM has as much in flight as it can.
    """
    cdef Pages* pages = <Pages*>m.scheme_state
    cdef int sm = warp / MAX_WARPS, other
    cdef int64_t next_ps = NEVER
    cdef bint full = pages.most_in_flight and not room_in_flight(pages, sm)
    if pages.buffered[sm] and (pages.n_awaited[warp] or not (at_end or t < pages.stalled_ps[sm] and not full)):
        serve_what_is_due(m, pages, t)
        for other in range(sm * MAX_WARPS, (sm + 1) * MAX_WARPS):
            if pages.n_awaited[other]:
                next_ps = smaller(next_ps, try_again(pages, other, t))
        if pages.buffered[sm] and (pages.n_awaited[warp] or not at_end):
            return larger(t, next_ps)
    return larger(t, pages.go_on_ps[warp] if at_end else pages.emptied_ps[sm])


cdef void written(MemorySystem* m, uint32_t first_entry, uint32_t end_entry) noexcept nogil:
    cdef Pages* pages = <Pages*>m.scheme_state
    cdef int64_t page
    for page in range(first_entry >> pages.entries_shift, (<int64_t>end_entry - 1 >> pages.entries_shift) + 1):
        pages.exists[page] = 1


cdef int64_t access(MemorySystem* m, uint32_t entry, int64_t t) noexcept nogil:
    """When the page of an entry can be used by an access that comes at `t`."""
    cdef Pages* pages = <Pages*>m.scheme_state
    cdef int64_t page = entry >> pages.entries_shift, state
    if region_of(m, entry).placement == HOST:
        return t
    state = state_of(pages, page)
    if state < FIRST:
        fault(m, pages, page, t)
    elif not pages.by_fault:
        if state == FIRST:
            pages.state[page] = USED
        make_newest(pages, page >> pages.frame_shift)
    return larger(t, pages.state[page] - USED)


cdef bint may_hold(MemorySystem* m, uint32_t entry) noexcept nogil:
    """A copy or fill writes a page where it is: only lines of resident ones can be in the L2."""
    cdef Pages* pages = <Pages*>m.scheme_state
    return region_of(m, entry).placement == HOST or state_of(pages, entry >> pages.entries_shift) >= FIRST


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
    oversubscription_key = "um.oversubscription"
    SUMMARY = "Unified Memory, pages migrating on fault into device memory that is too small"
    assumptions = {
        "um": "Unified Memory is a model (fault batches, tree prefetch, LRU eviction), not the hardware the paper measured; "
        "the run begins with the pages where `um.initial_location` says: the lowest ones resident, as many as fit, or all on the host",
    }
    COUNTERS = {
        "um.page_faults": "faults: loads, stores and atomics to a page that was neither in device memory nor on its way",
        "um.resident_bytes": "B: device memory for pages of the program's device allocations: what fits without oversubscription",
        "um.fault_handling_busy_ps": "ps: for which batches of faults were handled, one after the other, `um.fault_batch_latency` each",
        "um.pages_prefetched": "pages: migrated in with a faulting one",
        "um.pages_evicted": "pages: written back to make room",
        "um.evicted_dirty_sectors": "sectors: of `l2.writeback_sectors`, those that left the L2 with their page",
        "link.migration_in_bytes": "B: pages that Unified Memory migrated in",
        "link.migration_out_bytes": "B: pages that it evicted",
    }
    cdef Pages shape            # what the machine says of the pages
    cdef int64_t warps          # that the machine holds
    cdef bint zero_fill
    cdef object kept            # the memory of their states

    def __cinit__(self):
        self.fill, self.writeback = uncompressed_fill, uncompressed_writeback
        self.access, self.may_hold = access, may_hold

    def configure(self, machine, allocated_entries):
        cdef int64_t fitting = int(allocated_entries * (1 - Fraction(str(machine.um.oversubscription))))
        self.shape.entries_shift = (machine.um.page_size // ENTRY_BYTES).bit_length() - 1
        self.shape.frame_shift = ((machine.um.eviction_granularity or machine.um.page_size) // machine.um.page_size).bit_length() - 1
        if machine.um.capacity:
            fitting = machine.um.capacity // ENTRY_BYTES
        self.shape.capacity = larger(1, fitting >> self.shape.entries_shift + self.shape.frame_shift)
        self.shape.by_fault, self.shape.serial = machine.um.eviction_order == "lru_migration", machine.um.serialize_transfers
        self.shape.first_frames = self.shape.capacity if machine.um.initial_location == "device" else 0
        self.shape.pages_per_block = machine.um.va_block_size // machine.um.page_size
        self.shape.fault_ps, self.shape.fault_batch = machine.ps(machine.um.fault_batch_latency), machine.um.max_batch_faults
        self.shape.by_block, self.zero_fill = machine.um.fault_service == "batched", machine.um.zero_fill_untouched
        self.warps = machine.sm.count * MAX_WARPS
        if self.shape.by_block:
            self.shape.by_sm, self.shape.most_in_flight = machine.um.fault_replay_scope == "sm", machine.um.max_pending_faults_per_sm
            self.access, self.wake = access_by_block, wake_by_sm if self.shape.by_sm else wake_by_block
        if self.zero_fill:
            self.written = written

    cdef int prepare(self, MemorySystem* m, Arena* arena) except -1:
        """Makes the frames of lowest address resident, if any."""
        cdef Pages* pages = <Pages*>arena_zeroed(arena, 1, sizeof(Pages))
        cdef int64_t[::1] state
        cdef int32_t[::1] newer, older
        cdef int8_t[::1] listed
        cdef uint8_t[::1] awaited, n_awaited, batch, replayed, exists
        cdef int64_t frames
        pages[0] = self.shape
        pages.n = (m.n_entries >> pages.entries_shift) + 1
        pages.batch_start_ps = -1
        state = lazy_zeros(pages.n * sizeof(int64_t)).view(np.int64)
        frames = (pages.n - 1 >> pages.frame_shift) + 1
        newer, older = (lazy_zeros((frames + 1) * sizeof(int32_t)).view(np.int32) for _ in range(2))
        listed = lazy_zeros(frames).view(np.int8)
        pages.state, pages.newer, pages.older, pages.listed = &state[0], &newer[0], &older[0], &listed[0]
        self.kept = [state, newer, older, listed]
        if pages.by_block:
            awaited = lazy_zeros(self.warps * MOST_AWAITED * sizeof(Awaited))
            n_awaited = lazy_zeros(self.warps)
            batch, replayed = (lazy_zeros(n * sizeof(int64_t)) for n in (pages.fault_batch, pages.n))
            pages.replayed_ps = <int64_t*>&replayed[0]
            pages.awaited, pages.n_awaited, pages.batch = <Awaited*>&awaited[0], <int8_t*>&n_awaited[0], <int64_t*>&batch[0]
            self.kept += [awaited, n_awaited, batch, replayed]
            pages.in_flight = <int32_t*>arena_zeroed(arena, self.warps // MAX_WARPS, sizeof(int32_t))
            pages.buffered = <int32_t*>arena_zeroed(arena, self.warps // MAX_WARPS, sizeof(int32_t))
            pages.stalled_ps = <int64_t*>arena_zeroed(arena, self.warps // MAX_WARPS, sizeof(int64_t))
            pages.emptied_ps = <int64_t*>arena_zeroed(arena, self.warps // MAX_WARPS, sizeof(int64_t))
            pages.go_on_ps = <int64_t*>arena_zeroed(arena, self.warps, sizeof(int64_t))
        if self.zero_fill:
            exists = lazy_zeros(pages.n)
            pages.exists = <int8_t*>&exists[0]
            self.kept.append(exists)
        pages.first_frames = smaller(pages.first_frames, self.find_spans(m, pages, arena))
        pages.resident = pages.first_frames
        pages.page_ps = link_cost(&m.link, link_bytes(&m.link, <int64_t>ENTRY_BYTES << pages.entries_shift)) >> FINE_BITS
        m.scheme_state = pages
        return 0

    cdef int64_t find_spans(self, const MemorySystem* m, Pages* pages, Arena* arena) except -1:
        """The pages of all allocations of device memory, those of one place at different times once; their frames."""
        cdef Span* spans = <Span*>arena_zeroed(arena, m.n_regions + 1, sizeof(Span))
        cdef Span* last
        cdef const Region* region
        cdef int64_t first, end, frames = 0, last_frame = -1
        cdef int number
        for number in sorted(range(m.n_regions), key=lambda number: m.regions[<int>number].first_entry):
            region = &m.regions[number]
            if region.placement == HOST:
                continue
            first = region.first_entry >> pages.entries_shift
            end = (<int64_t>region.first_entry + region.entries - 1 >> pages.entries_shift) + 1
            if pages.n_spans and first <= spans[pages.n_spans - 1].end:
                last = &spans[pages.n_spans - 1]
                last.end = larger(last.end, end)
            else:
                last = &spans[pages.n_spans]
                last.first, last.end, last.before = first, end, frames
                if frames and first >> pages.frame_shift == last_frame:      # in which the span below ends
                    last.before -= 1
                pages.n_spans += 1
            frames = frame_number(pages, last, last.end - 1) + 1
            last_frame = last.end - 1 >> pages.frame_shift
        pages.spans = spans
        return frames

    cdef dict counters(self, const MemorySystem* m):
        cdef const Pages* pages = <const Pages*>m.scheme_state
        return {
            "um.page_faults": pages.faults,
            "um.resident_bytes": (pages.capacity << pages.entries_shift + pages.frame_shift) * ENTRY_BYTES,
            "um.fault_handling_busy_ps": pages.batches * pages.fault_ps,
            "um.pages_prefetched": pages.prefetched,
            "um.pages_evicted": pages.evicted,
            "um.evicted_dirty_sectors": pages.dirty_sectors,
            "link.migration_in_bytes": m.count.link_read[<int>SCHEME_TRAFFIC],
            "link.migration_out_bytes": m.count.link_write[<int>SCHEME_TRAFFIC],
        }
