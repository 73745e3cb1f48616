"""Set-up of the state, and warps that wait for an unknown time."""
from buddysim.replay.primitives.arena cimport arena_zeroed
from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.event_heap cimport HeapEvent, heap_free, heap_push, heap_time
from buddysim.replay.primitives.events cimport NEVER
from buddysim.replay.primitives.extremes cimport min_i64
from buddysim.replay.primitives.pool cimport pool_free, pool_init
from buddysim.replay.sm.stream cimport NEVER_USED, OP_END
from buddysim.replay.sm.warp cimport MAX_PENDING, MAX_WARPS, warp_pending

cdef enum:
    RANK_BITS = 48  # of an event among those of its kind


cdef int arrival_order_init(ArrivalOrder* order, Arena* arena, int n_sms, int n_schedulers) except -1:
    """Switches the order of arrival on, for a run that has not begun."""
    cdef int sm
    order.used = True
    pool_init(&order.lines, sizeof(WaitingLine))
    pool_init(&order.instructions, sizeof(InFlight))
    pool_init(&order.fills, sizeof(LineFill))
    order.queues = <SmQueue*>arena_zeroed(arena, n_sms, sizeof(SmQueue))
    for sm in range(n_sms):
        order.queues[sm].first = -1
        order.queues[sm].enters_ps = NEVER
    order.stopped = <StoppedScheduler*>arena_zeroed(arena, <size_t>n_sms * n_schedulers, sizeof(StoppedScheduler))
    order.unknown = <int*>arena_zeroed(arena, <size_t>n_sms * MAX_WARPS, sizeof(int))
    order.blocked = <uint8_t*>arena_zeroed(arena, <size_t>n_sms * MAX_WARPS, sizeof(uint8_t))
    return 0


cdef void arrival_order_free(ArrivalOrder* order) noexcept:
    """Frees what is not in the arena."""
    heap_free(&order.events)
    pool_free(&order.lines)
    pool_free(&order.instructions)
    pool_free(&order.fills)


cdef void push_event(ArrivalOrder* order, int64_t time_ps, ArrivalEvent kind, int64_t rank, int number) noexcept nogil:
    """Adds an event."""
    if not heap_push(&order.events, HeapEvent(time_ps, <int64_t><int>kind << RANK_BITS | rank, <int>kind, number)):
        order.failed = True
    order.first_ps = heap_time(&order.events)


cdef bint waits_for_unknown(const ArrivalOrder* order, Warp* warp, PendingLoad* other_pending, int64_t now,
                            int64_t* retry_ps) noexcept nogil:
    """Whether `warp_next` needs an unknown time; `retry_ps` becomes when a known one is the earliest, if that is what it needs."""
    cdef int i, left = 0
    cdef int64_t clock_ps = warp.clock_ps + warp.op.gap_latency_ps, earliest = UNKNOWN_PS
    cdef bint any_unknown = False
    cdef PendingLoad* load
    if warp.op.kind == OP_END:
        return order.unknown[warp.number] != 0
    for i in range(warp.n_pending_loads):
        load = warp_pending(warp, other_pending, i)
        if load.use_clock_ps > clock_ps:
            left += 1
            any_unknown |= load.arrival_ps >= UNKNOWN_PS
            earliest = min_i64(earliest, load.arrival_ps)
        elif load.arrival_ps >= UNKNOWN_PS:
            return True
    if unlikely(left == MAX_PENDING) and warp.op.use_ps != NEVER_USED and any_unknown and earliest > now:
        retry_ps[0] = earliest
        return True
    return False


cdef bint block_warp(ArrivalOrder* order, Warp* warp, PendingLoad* other_pending, int64_t now) noexcept nogil:
    """Blocks a warp whose next operation needs an unknown time, until an instruction of it has arrived; returns whether it does."""
    cdef int64_t retry_ps = UNKNOWN_PS
    order.blocked[warp.number] = waits_for_unknown(order, warp, other_pending, now, &retry_ps)
    if retry_ps < UNKNOWN_PS:
        push_event(order, retry_ps, WARP_RETRIES, warp.number, warp.number)
    return order.blocked[warp.number] != 0
