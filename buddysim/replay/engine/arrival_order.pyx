"""Lines at the L1 of their SM, requests at their slice, replies, in the order of time.

In the order of issue, a request is simulated to its end when its instruction issues. Here it is followed by events: a line enters
the L1 when the port gets to it, and holds the port while it waits for an MSHR or for a slot of the store buffer. Its request looks
up the L2 when it arrives at its slice. Only then is its reply known, which frees the MSHR and wakes the warp.
"""
from libc.stdint cimport uint32_t

from buddysim.replay.l1.l1 cimport L1, L1s, count_mshr_merge, l1_enter, MERGE_COUNT_SHIFT
from buddysim.replay.l2.l2 cimport load_at_slice, store_at_slice
from buddysim.replay.crossbar.crossbar cimport send_request
from buddysim.replay.memory.memory cimport MemorySystem, SmPorts
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.cache cimport (
    PENDING, CacheSet, Line, cache_find, cache_replace, cache_set, cache_touch, pending_at, sector_count,
)
from buddysim.replay.primitives.event_heap cimport HeapEvent, heap_pop, heap_time
from buddysim.replay.primitives.events cimport NEVER, events_set
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.kinds cimport L1_MSHR, L1_PORT, L1_STORE
from buddysim.replay.primitives.pool cimport pool_give, pool_item, pool_take
from buddysim.replay.primitives.waits cimport count_wait, histogram_add
from buddysim.replay.sm.arrival_order cimport (
    AT_LIMIT, LINE_ENTERS, MSHR_FREED, NEEDS_MSHR, NEEDS_NOTHING, NEEDS_SLOT, QUEUED, REQUEST_ARRIVED, SLOT_FREED, UNKNOWN_PS,
    InFlight, LineFill, SmQueue, Stage, StoppedScheduler, WaitingLine, push_event,
)
from buddysim.replay.sm.host_prefetch cimport locate_lines
from buddysim.replay.sm.issue_order cimport Scheduler, scheduler_resume, scheduler_set, scheduler_time
from buddysim.replay.sm.stream cimport MANY_LINES, NEVER_USED, StreamOp, stream_locations, stream_words
from buddysim.replay.sm.thread_blocks cimport ActiveKernel, next_time
from buddysim.replay.sm.warp cimport MAX_OTHER_PENDING, MAX_WARPS, PendingLoad, warp_add_pending, warp_issued, warp_pending
from buddysim.trace.records cimport OP_ATOMIC, OP_LOAD, OP_STORE

cdef extern from *:
    int lowest_bit "__builtin_ctz"(unsigned int x) noexcept nogil


cdef inline WaitingLine* line_of(RunState* g, int number) noexcept nogil:
    return <WaitingLine*>pool_item(&g.order.lines, number)


cdef inline InFlight* instruction_of(RunState* g, int number) noexcept nogil:
    return <InFlight*>pool_item(&g.order.instructions, number)


cdef inline LineFill* fill_of(RunState* g, int number) noexcept nogil:
    return <LineFill*>pool_item(&g.order.fills, number)


cdef void issue_in_arrival_order(RunState* g, HostPrefetcher* prefetcher, int scheduler_number, int sm, int position, Warp* warp,
                                 int64_t now) noexcept nogil:
    """Issues the memory operation of a warp: its lines queue at the L1 of its SM."""
    cdef MemorySystem* m = &g.m
    cdef SmQueue* queue = &g.order.queues[sm]
    cdef Scheduler* scheduler = &g.schedulers[scheduler_number]
    cdef const StreamOp* op = warp.op
    cdef int number
    cdef StoppedScheduler* stopped
    m.horizon.now_ps = now
    m.count.memory_instructions += 1
    m.count.line_accesses += op.n_lines
    number = instruction_begin(g, warp, op, queue.pushed_work)
    if number < 0 or not queue_lines(g, prefetcher, sm, number, op, now):
        g.order.failed = True
        return
    if op.use_ps != NEVER_USED:
        warp_add_pending(warp, g.pending_loads + warp.number * MAX_OTHER_PENDING, warp.clock_ps + op.use_ps, UNKNOWN_PS + number)
    stopped = &g.order.stopped[sm * g.n_schedulers + queue.n_stopped]
    stopped[0] = StoppedScheduler(scheduler_number, scheduler.slot[position], now, queue.pushed_work - g.l1.queue_ps)
    queue.n_stopped += 1
    scheduler.next_issue_ps = NEVER
    events_set(&g.events, scheduler_number, NEVER)
    if not op.n_lines:
        instruction_done(g, number, now)
    lines_enter(g, sm, now)
    resume_schedulers(g, sm, now)


cdef int instruction_begin(RunState* g, Warp* warp, const StreamOp* op, int64_t begin_work) noexcept nogil:
    """The number of an operation that issues; -1 if there is no memory."""
    cdef int number = pool_take(&g.order.instructions), kernel = g.blocks[warp.block].kernel
    cdef bint stores = op.kind == OP_STORE and g.l1.stored_ps != NULL
    if number < 0:
        return -1
    instruction_of(g, number)[0] = InFlight(-1, warp.number, kernel, op.n_lines, stores, 0, begin_work, 0)
    if stores:
        g.kernels[kernel].stores_in_flight += 1
    else:
        g.order.unknown[warp.number] += 1
    return number


cdef bint queue_lines(RunState* g, HostPrefetcher* prefetcher, int sm, int instruction, const StreamOp* op,
                      int64_t now) noexcept nogil:
    """Puts the lines of an operation into the queue of its L1, in the order in which its banks let them enter."""
    cdef MemorySystem* m = &g.m
    cdef L1s* l1 = &g.l1
    cdef SmQueue* queue = &g.order.queues[sm]
    cdef const LineLocation* at = stream_locations(op)
    cdef int64_t[256] enters_ps
    cdef int[256] order
    cdef int64_t work_ps, leave_ps
    cdef int i, j, n = op.n_lines, number, sectors = 0
    cdef WaitingLine* line
    if n >= MANY_LINES:
        locate_lines(m, &l1.cache, stream_words(op), n, prefetcher.lines)
        prefetcher.located = NULL
        at = prefetcher.lines
    work_ps = port_work(l1, m, op, at, enters_ps, &leave_ps)
    instruction_of(g, instruction).leave_ps = leave_ps
    for i in range(n):
        j = i
        while j and enters_ps[order[j - 1]] > enters_ps[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
        sectors += sector_count(at[i].masks & 15)
    for i in range(n):
        number = pool_take(&g.order.lines)
        if number < 0:
            return False
        line = line_of(g, number)
        line[0] = WaitingLine(-1, -1, instruction, sm, -1, op.kind, QUEUED, i == n - 1, at[order[i]].masks & 15, 0, 0,
                              queue.pushed_work + enters_ps[order[i]], now, 0, 0, at[order[i]])
        if queue.first < 0:
            queue.first = number
        else:
            line_of(g, queue.last).next = number
        queue.last = number
    queue.pushed_work += work_ps
    count_sectors(g, sm, op, sectors)
    return True


cdef inline void count_sectors(RunState* g, int sm, const StreamOp* op, int sectors) noexcept nogil:
    """Counts the sectors of an operation that issues."""
    if op.kind == OP_STORE:
        g.m.count.store_sectors += sectors
        return
    g.m.count.load_sectors += sectors
    if sectors and op.kind == OP_LOAD and g.l1.enabled:
        g.l1.sms[sm].used = 1
        g.m.count.l1_accesses += sectors
        g.m.count.l1_lines += op.n_lines


cdef int64_t port_work(const L1s* l1, MemorySystem* m, const StreamOp* op, const LineLocation* at, int64_t* enters_ps,
                       int64_t* leave_ps) noexcept nogil:
    """The time that an operation takes at an idle port of the L1; when each line enters, and how early it can arrive (ps)."""
    cdef L1 idle
    cdef int64_t* bins = m.waits.bins
    cdef int i
    idle.free_ps = 0
    m.waits.bins = NULL
    for i in range(op.n_lines):
        enters_ps[i] = l1.enter(l1, m, &idle, &at[i], i, 0) if l1.enter != NULL else l1_enter(l1, m, &idle, 0)
    leave_ps[0] = l1.leave(l1, m, &idle, op, 0) if l1.leave != NULL and op.n_lines else 0
    m.waits.bins = bins
    return idle.free_ps


# Lines at the L1

cdef void line_enters_at(RunState* g, int sm, int64_t time_ps) noexcept nogil:
    """Has the first line of an SM enter, or go on, at a time."""
    if g.order.queues[sm].enters_ps != time_ps:
        g.order.queues[sm].enters_ps = time_ps
        push_event(&g.order, time_ps, LINE_ENTERS, sm, sm)


cdef void lines_enter(RunState* g, int sm, int64_t now) noexcept nogil:
    """Lets lines enter the L1 of an SM until one must wait."""
    cdef SmQueue* queue = &g.order.queues[sm]
    cdef WaitingLine* line
    cdef int64_t enters_ps
    cdef int number
    while queue.first >= 0 and not g.order.failed:
        number = queue.first
        line = line_of(g, number)
        if line.stage == QUEUED:
            enters_ps = max_i64(line.issued_ps, queue.granted_ps + line.work - queue.granted_work)
            if enters_ps > now:
                line_enters_at(g, sm, enters_ps)
                return
            line.entered_ps = enters_ps
            count_wait(&g.m.waits, L1_PORT, enters_ps - line.issued_ps)
            line.stage = first_need(g, number, now)
        elif line.stage == AT_LIMIT:
            line.entered_ps = now
            line.stage = look_up(g, number, now)
        if line.stage == AT_LIMIT or not takes_what_it_needs(g, queue, line, now):
            return
        queue.first = line.next
        queue.granted_ps, queue.granted_work = now, line.work
        line_has_entered(g, number, now)
        resume_schedulers(g, sm, now)


cdef Stage first_need(RunState* g, int number, int64_t now) noexcept nogil:
    """What a line needs that enters the L1."""
    cdef WaitingLine* line = line_of(g, number)
    if line.kind == OP_STORE:
        return NEEDS_SLOT
    if line.kind != OP_LOAD or not g.l1.enabled:
        return NEEDS_NOTHING
    return look_up(g, number, now)


cdef bint takes_what_it_needs(RunState* g, SmQueue* queue, const WaitingLine* line, int64_t now) noexcept nogil:
    """Takes an MSHR or a slot, if the line needs one; False if none is free."""
    cdef int64_t wait_ps = now - line.entered_ps
    if line.stage == NEEDS_MSHR:
        if queue.loads == g.l1.n_mshrs:
            return False
        queue.loads += 1
        if wait_ps:
            count_wait(&g.m.waits, L1_MSHR, wait_ps)
    elif line.stage == NEEDS_SLOT:
        if queue.stores == g.l1.n_mshrs:
            return False
        queue.stores += 1
        if wait_ps:
            count_wait(&g.m.waits, L1_STORE, wait_ps)
    return True


cdef void line_has_entered(RunState* g, int number, int64_t now) noexcept nogil:
    """Sends the request of a line, if it needs one; else the line has arrived, or waits for its fill."""
    cdef WaitingLine* line = line_of(g, number)
    cdef InFlight* instruction = instruction_of(g, line.instruction)
    cdef int64_t arrives_ps
    cdef int n = sector_count(line.sectors), requests
    cdef bint in_l1 = line.kind == OP_LOAD and g.l1.enabled
    if line.last and instruction.leave_ps:
        instruction.arrival_ps = max_i64(instruction.arrival_ps, now - (line.work - instruction.begin_work) + instruction.leave_ps)
    if not in_l1 or line.stage == NEEDS_MSHR:
        g.order.sent += 1
        requests = n if line.kind == OP_STORE else 1
        arrives_ps = send_request(&g.m, &g.m.crossbar.sms[line.sm], &g.m.l2.slices[line.at.slice], n, requests, now)
        push_event(&g.order, arrives_ps, REQUEST_ARRIVED, g.order.sent, number)
    elif not line.waits_for:
        line_done(g, number, line.arrival_ps, now)


cdef Stage look_up(RunState* g, int number, int64_t now) noexcept nogil:
    """Looks up a load's line, which enters the L1 or goes on there; returns what it needs."""
    cdef WaitingLine* line = line_of(g, number)
    cdef L1s* l1 = &g.l1
    cdef CacheSet set = cache_set(&l1.cache, l1.sms[line.sm].sets + line.at.l1_set)
    cdef int64_t way = cache_find(&l1.cache, &set, line.at.entry)
    cdef unsigned int state = 0, present = 0, in_flight = 0, merged
    cdef uint32_t evicted
    line.arrival_ps = now + l1.hit_ps
    if way >= 0:
        cache_touch(&l1.cache, &set, way)
        if line.stage != AT_LIMIT:
            g.m.count.l1_line_hits += 1
        state = set.lines[way]
        present = state & line.sectors
        in_flight = pending_at(state, set.ready_ps + way, now)
        merged = in_flight & present
        if l1.max_mshr_merges:
            state = count_mshr_merge(state, l1.max_mshr_merges, merged, in_flight)
            set.lines[way] = <Line>state
            if merged and state >> MERGE_COUNT_SHIFT & 15 > l1.max_mshr_merges:
                wait_at_limit(g, line.sm, set.ready_ps[way])
                return AT_LIMIT
        if merged:
            wait_for_fill(g, number, set.ready_ps[way])
            g.m.count.l1_mshr_merges += sector_count(merged)
        g.m.count.l1_hits += sector_count(present & ~merged)
    else:
        way = cache_replace(&l1.cache, &set, line.at.entry, &evicted)
    line.sectors &= ~present
    if not line.sectors:
        return NEEDS_NOTHING
    set.lines[way] = <Line>(state & ((1 << PENDING) - 1) | line.sectors | (line.sectors | in_flight) << PENDING)
    miss(g, number, set.ready_ps + way, in_flight != 0)
    return NEEDS_MSHR


cdef void wait_at_limit(RunState* g, int sm, int64_t ready_ps) noexcept nogil:
    """Stops the L1 of an SM until a line in flight has arrived."""
    if ready_ps >= UNKNOWN_PS:
        fill_of(g, <int>(ready_ps - UNKNOWN_PS)).stalled_sm = sm
    else:
        line_enters_at(g, sm, ready_ps)


cdef void wait_for_fill(RunState* g, int number, int64_t ready_ps) noexcept nogil:
    """Lets a line wait for the sectors of its L1 line that are in flight now."""
    cdef WaitingLine* line = line_of(g, number)
    cdef LineFill* fill
    if ready_ps < UNKNOWN_PS:
        line.arrival_ps = max_i64(line.arrival_ps, ready_ps)
        return
    line.fill = <int>(ready_ps - UNKNOWN_PS)
    fill = fill_of(g, line.fill)
    line.arrival_ps = max_i64(line.arrival_ps, fill.arrival_ps)
    line.waits_for = fill.open
    line.next_waiting = fill.waiting
    fill.waiting = number


cdef void miss(RunState* g, int number, int64_t* ready_ps, bint in_flight) noexcept nogil:
    """Gives a line that misses a slot of its L1 line's fill."""
    cdef WaitingLine* line = line_of(g, number)
    cdef bint waits = line.waits_for != 0
    cdef LineFill* fill
    cdef int fill_number
    if in_flight and ready_ps[0] >= UNKNOWN_PS:
        fill_number = <int>(ready_ps[0] - UNKNOWN_PS)
    else:
        fill_number = pool_take(&g.order.fills)
        if fill_number < 0:
            g.order.failed = True
            return
        fill_of(g, fill_number)[0] = LineFill(-1, -1, 0, -1, ready_ps[0] if in_flight else 0, ready_ps)
        ready_ps[0] = UNKNOWN_PS + fill_number
    fill = fill_of(g, fill_number)
    line.fill, line.slot = fill_number, <uint32_t>lowest_bit(~fill.open)
    fill.open |= <uint32_t>1 << line.slot
    line.waits_for |= <uint32_t>1 << line.slot
    if not waits:
        line.next_waiting = fill.waiting
        fill.waiting = number


cdef void resume_schedulers(RunState* g, int sm, int64_t now) noexcept nogil:
    """Resumes schedulers of an SM whose instructions count as issued before the next line enters."""
    cdef SmQueue* queue = &g.order.queues[sm]
    cdef StoppedScheduler* stopped = &g.order.stopped[sm * g.n_schedulers]
    cdef int64_t until = line_of(g, queue.first).work if queue.first >= 0 else queue.pushed_work, issued_ps
    cdef Scheduler* scheduler
    cdef StoppedScheduler first
    cdef Warp* warp
    cdef int i
    while queue.n_stopped and stopped[0].work <= until:
        first = stopped[0]
        queue.n_stopped -= 1
        for i in range(queue.n_stopped):
            stopped[i] = stopped[i + 1]
        issued_ps = max_i64(first.issued_ps, queue.granted_ps + first.work - queue.granted_work)
        warp = &g.warps[sm * MAX_WARPS + first.slot]
        warp_issued(warp, issued_ps)
        scheduler = &g.schedulers[first.scheduler]
        scheduler.next_issue_ps = max_i64(first.issued_ps + g.core.cycle_ps, issued_ps)
        scheduler_resume(scheduler, position_of(scheduler, first.slot), next_time(g, warp, now))
        events_set(&g.events, first.scheduler, scheduler_time(scheduler))


cdef int position_of(const Scheduler* scheduler, int slot) noexcept nogil:
    """Index of the warp of a slot in its scheduler."""
    cdef int position
    for position in range(scheduler.n):
        if scheduler.slot[position] == slot:
            return position
    return 0


# Requests and replies

cdef void next_arrival_event(RunState* g) noexcept nogil:
    """Simulates the earliest event of the order of arrival."""
    cdef HeapEvent event = heap_pop(&g.order.events)
    cdef int64_t now = event.time_ps
    cdef SmQueue* queue
    g.order.first_ps = heap_time(&g.order.events)
    g.m.horizon.now_ps = now
    if event.kind == REQUEST_ARRIVED:
        request_arrived(g, event.number, now)
    elif event.kind == LINE_ENTERS:
        queue = &g.order.queues[event.number]
        if queue.enters_ps == now:
            queue.enters_ps = NEVER
            lines_enter(g, event.number, now)
    elif event.kind == MSHR_FREED or event.kind == SLOT_FREED:
        queue = &g.order.queues[event.number]
        if event.kind == MSHR_FREED:
            queue.loads -= 1
        else:
            queue.stores -= 1
        if queue.first >= 0 and line_of(g, queue.first).stage == (NEEDS_MSHR if event.kind == MSHR_FREED else NEEDS_SLOT):
            line_enters_at(g, event.number, now)
    else:
        retry_warp(g, &g.warps[event.number], now)


cdef void request_arrived(RunState* g, int number, int64_t now) noexcept nogil:
    """Looks up the L2 for a request, and notes when its reply arrives."""
    cdef WaitingLine line = line_of(g, number)[0]
    cdef MemorySystem* m = &g.m
    cdef SmPorts* ports = &m.crossbar.sms[line.sm]
    cdef int64_t reply_ps
    if line.kind == OP_STORE:
        reply_ps = store_at_slice(m, ports, &line.at, line.sectors, line.at.masks >> 4, now)
        push_event(&g.order, reply_ps, SLOT_FREED, line.sm, line.sm)
    else:
        reply_ps = load_at_slice(m, ports, &line.at, line.sectors, line.kind == OP_ATOMIC, now)
        if line.kind == OP_LOAD and g.l1.enabled:
            m.count.load_ps += reply_ps - line.entered_ps
            histogram_add(m.count.load_histogram, reply_ps - line.entered_ps)
            push_event(&g.order, reply_ps, MSHR_FREED, line.sm, line.sm)
            slot_filled(g, line.fill, line.slot, reply_ps, now)
            return
    line_done(g, number, reply_ps, now)


cdef void slot_filled(RunState* g, int number, uint32_t slot, int64_t reply_ps, int64_t now) noexcept nogil:
    """The reply to a miss is known: so are the arrivals of lines that waited for nothing else."""
    cdef LineFill* fill = fill_of(g, number)
    cdef WaitingLine* line
    cdef int waiting = fill.waiting, after, left = -1, done = -1
    fill.open &= ~(<uint32_t>1 << slot)
    fill.arrival_ps = max_i64(fill.arrival_ps, reply_ps)
    while waiting >= 0:
        line = line_of(g, waiting)
        after = line.next_waiting
        if line.waits_for >> slot & 1:
            line.waits_for &= ~(<uint32_t>1 << slot)
            line.arrival_ps = max_i64(line.arrival_ps, reply_ps)
        if line.waits_for:
            line.next_waiting, left = left, waiting
        else:
            line.next_waiting, done = done, waiting
        waiting = after
    fill.waiting = left
    if not fill.open:
        if fill.ready_ps[0] == UNKNOWN_PS + number:
            fill.ready_ps[0] = fill.arrival_ps
        if fill.stalled_sm >= 0:
            line_enters_at(g, fill.stalled_sm, fill.arrival_ps)
        pool_give(&g.order.fills, number)
    while done >= 0:
        after = line_of(g, done).next_waiting
        line_done(g, done, line_of(g, done).arrival_ps, now)
        done = after


cdef void line_done(RunState* g, int number, int64_t arrival_ps, int64_t now) noexcept nogil:
    """The arrival of a line is known."""
    cdef int instruction_number = line_of(g, number).instruction
    cdef InFlight* instruction = instruction_of(g, instruction_number)
    pool_give(&g.order.lines, number)
    instruction.arrival_ps = max_i64(instruction.arrival_ps, arrival_ps)
    instruction.lines_left -= 1
    if not instruction.lines_left:
        instruction_done(g, instruction_number, now)


cdef void instruction_done(RunState* g, int number, int64_t now) noexcept nogil:
    """The arrival of an instruction is known to its warp."""
    cdef InFlight instruction = instruction_of(g, number)[0]
    cdef Warp* warp = &g.warps[instruction.warp]
    cdef PendingLoad* other_pending = g.pending_loads + instruction.warp * MAX_OTHER_PENDING
    cdef PendingLoad* load
    cdef int i
    pool_give(&g.order.instructions, number)
    for i in range(warp.n_pending_loads):
        load = warp_pending(warp, other_pending, i)
        if load.arrival_ps == UNKNOWN_PS + number:
            load.arrival_ps = instruction.arrival_ps
    if instruction.stores:
        store_done(g, &g.kernels[instruction.kernel], instruction.arrival_ps)
        return
    warp.last_arrival_ps = max_i64(warp.last_arrival_ps, instruction.arrival_ps)
    g.order.unknown[instruction.warp] -= 1
    retry_warp(g, warp, now)


cdef void retry_warp(RunState* g, Warp* warp, int64_t now) noexcept nogil:
    """Lets a blocked warp go on, if all times that it needs are known."""
    cdef int64_t ready_ps
    if g.order.blocked[warp.number]:
        ready_ps = next_time(g, warp, now)
        if not g.order.blocked[warp.number]:
            warp_goes_on(g, warp, ready_ps)


cdef void warp_goes_on(RunState* g, const Warp* warp, int64_t ready_ps) noexcept nogil:
    """Puts a warp that was blocked into the order of its scheduler."""
    cdef int slot = warp.number % MAX_WARPS
    cdef int scheduler_number = warp.number // MAX_WARPS * g.n_schedulers + slot % g.n_schedulers
    cdef Scheduler* scheduler = &g.schedulers[scheduler_number]
    scheduler_set(scheduler, position_of(scheduler, slot), ready_ps)
    events_set(&g.events, scheduler_number, scheduler_time(scheduler))


cdef void store_done(RunState* g, ActiveKernel* kernel, int64_t arrival_ps) noexcept nogil:
    """The acknowledgement of a store is known, for which the kernel's last warp waits."""
    kernel.stored_ps = max_i64(kernel.stored_ps, arrival_ps)
    kernel.stores_in_flight -= 1
    if not kernel.stores_in_flight and kernel.last_warp >= 0:
        warp_goes_on(g, &g.warps[kernel.last_warp], kernel.stored_ps)
        kernel.last_warp = -1
