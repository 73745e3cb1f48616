"""Input queues, replies through reservation tables, and the arbitration between SMs whose requests meet at a slice."""
from libc.stdint cimport int64_t

from buddysim.replay.memory.memory cimport Slice, SmPorts
from buddysim.replay.primitives.arena cimport arena_zeroed
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.kinds cimport REQUEST_PORT
from buddysim.replay.primitives.reservation_table cimport (
    ReservationTable, SlotGrid, reserve_first_free, slot_at, slot_grid, table_init,
)
from buddysim.replay.primitives.waits cimport count_wait

ctypedef int64_t (*EarliestOp)(const MemorySystem* m, SmPorts* sm, const Slice* slice, int64_t t) noexcept nogil
ctypedef void (*RecordOp)(const MemorySystem* m, SmPorts* sm, Slice* slice, int64_t departure_ps) noexcept nogil

# The run of an SM's requests to one slice.
cdef struct Requester:
    int last_slice              # slice of the last request + 1; 0: none
    int slots_per_request       # arbitration slots between its requests to last_slice: 2 if another SM competes, else 1
    int64_t next_request_ps     # earliest time of its next request to last_slice

# Requests reserved at a slice.
cdef struct Reserved:
    int64_t by_sm               # SM with the latest request reserved, + 1; 0: none
    int64_t until_ps            # end of that request
    int64_t until_by_others_ps  # end of the latest request of any other SM

cdef struct Interleaving:
    Requester* requesters       # [sms]
    Reserved* reserved          # [slices]


cdef int input_queues_init(Arena* arena, MemorySystem* m, dict n) except -1:
    """Sets up queues and tables of a machine (`crossbar.numbers`), after its SMs and slices."""
    cdef int i
    m.crossbar.queue_sector_ps = n["queue_sector_ps"]
    m.crossbar.slice_grid = slot_grid(n["slice_sector_ps"], 0, 0)
    m.crossbar.reply_grid = slot_grid(n["reply_sector_ps"], 0, 0)
    for i in range(<int>n["sms"]):
        m.crossbar.sms[i].reply_reservations = new_table(arena, &m.crossbar.reply_grid)
    for i in range(<int>n["slices"]):
        m.l2.slices[i].request_reservations = new_table(arena, &m.crossbar.slice_grid)
        m.l2.slices[i].reply_reservations = new_table(arena, &m.crossbar.slice_grid)
    m.crossbar.send_requests, m.crossbar.send_replies = send_requests, send_replies
    if n["interleave_requesters"]:
        interleaving_init(arena, m)
    return 0


cdef ReservationTable* new_table(Arena* arena, const SlotGrid* grid) except NULL:
    cdef ReservationTable* table = <ReservationTable*>arena_zeroed(arena, 1, sizeof(ReservationTable))
    table_init(grid, table, 0)
    return table


cdef inline int64_t reserve_sector_slot(MemorySystem* m, const SlotGrid* grid, ReservationTable* table,
                                        int64_t t) noexcept nogil:
    """Reserves the first free slot from `t` on; returns its start, not before `t`."""
    return max_i64(t, grid.slot_ps * reserve_first_free(grid, table, &m.horizon, slot_at(grid, t)))


cdef inline int64_t send_through_queue(MemorySystem* m, SmPorts* sm, Slice* slice, int requests, int64_t t,
                                       EarliestOp earliest, RecordOp record) noexcept nogil:
    """Sends the requests of a line, one per sector, to a slice through their SM's input queue, which they reach at `t`.

    A request leaves after those before it, when its slice accepts it; it blocks all requests behind it (head-of-line blocking).
    `earliest` and `record`, constants, arbitrate between SMs; NULL: first come, first served.
    Returns the time at which the last one leaves, less its distance from the first one between an idle queue and an idle slice.
    """
    cdef int64_t departure_ps = t
    for _ in range(requests):
        departure_ps = max_i64(departure_ps, sm.queue_free_ps)
        if earliest != NULL:
            departure_ps = earliest(m, sm, slice, departure_ps)
        departure_ps = reserve_sector_slot(m, &m.crossbar.slice_grid, slice.request_reservations, departure_ps)
        sm.queue_free_ps = departure_ps + m.crossbar.queue_sector_ps
        if record != NULL:
            record(m, sm, slice, departure_ps)
    departure_ps = max_i64(t, departure_ps - (requests - 1) * max_i64(m.crossbar.queue_sector_ps, m.crossbar.slice_grid.slot_ps))
    count_wait(&m.waits, REQUEST_PORT, departure_ps - t)
    return departure_ps


cdef int64_t send_requests(MemorySystem* m, SmPorts* sm, Slice* slice, int requests, int64_t t) noexcept nogil:
    return send_through_queue(m, sm, slice, requests, t, NULL, NULL)


cdef int64_t send_replies(MemorySystem* m, SmPorts* sm, Slice* slice, int replies, int64_t t) noexcept nogil:
    """Sends the replies of a slice at `t`, one per sector, to an SM; returns the time at which the last one leaves.

    In each slot, one reply leaves a slice and one arrives at an SM; replies to one request are at least `sector_ps` apart.
    Replies reserve slots out of order: none blocks another.
    """
    cdef int64_t departure_ps = t - m.crossbar.sector_ps
    for _ in range(replies):
        departure_ps += m.crossbar.sector_ps
        departure_ps = reserve_sector_slot(m, &m.crossbar.slice_grid, slice.reply_reservations, departure_ps)
        departure_ps = reserve_sector_slot(m, &m.crossbar.reply_grid, sm.reply_reservations, departure_ps)
    return departure_ps


cdef int64_t reserve_between_slices(MemorySystem* m, Slice* sender, Slice* receiver, int64_t t) noexcept nogil:
    """Reserves a slot out of one slice and one into another, from `t` on; returns the start of the latter."""
    t = reserve_sector_slot(m, &m.crossbar.slice_grid, sender.reply_reservations, t)
    return reserve_sector_slot(m, &m.crossbar.slice_grid, receiver.request_reservations, t)


cdef int interleaving_init(Arena* arena, MemorySystem* m) except -1:
    """Makes an SM leave every other arbitration slot of a slice to competing SMs (as iSLIP would)."""
    cdef Interleaving* state = <Interleaving*>arena_zeroed(arena, 1, sizeof(Interleaving))
    state.requesters = <Requester*>arena_zeroed(arena, m.crossbar.n_sms, sizeof(Requester))
    state.reserved = <Reserved*>arena_zeroed(arena, m.l2.n_slices.by, sizeof(Reserved))
    m.crossbar.arbitration_state, m.crossbar.send_requests = state, send_interleaved
    return 0


cdef inline Requester* requester_of(const MemorySystem* m, const SmPorts* sm) noexcept nogil:
    return (<Interleaving*>m.crossbar.arbitration_state).requesters + (sm - m.crossbar.sms)


cdef inline Reserved* reserved_of(const MemorySystem* m, const Slice* slice) noexcept nogil:
    return (<Interleaving*>m.crossbar.arbitration_state).reserved + (slice - m.l2.slices)


cdef inline int64_t earliest_request_time(const MemorySystem* m, SmPorts* sm, const Slice* slice, int64_t t) noexcept nogil:
    """Earliest time at which a request, at the head of its SM's queue at `t`, may leave for a slice.

    Consecutive requests of an SM to one slice are a run. A run that begins while requests of other SMs are reserved there leaves
    every other arbitration slot to them.
    """
    cdef int number = <int>(slice - m.l2.slices) + 1, sm_number = <int>(sm - m.crossbar.sms) + 1
    cdef Requester* own = requester_of(m, sm)
    cdef const Reserved* reserved = reserved_of(m, slice)
    if own.last_slice == number and own.next_request_ps >= t:
        return own.next_request_ps
    own.last_slice = number
    own.slots_per_request = 1
    if t < (reserved.until_by_others_ps if reserved.by_sm == sm_number else reserved.until_ps):
        own.slots_per_request = 2
    return t


cdef inline void record_request(const MemorySystem* m, SmPorts* sm, Slice* slice, int64_t departure_ps) noexcept nogil:
    """Records that a request of an SM leaves for a slice at `departure_ps`."""
    cdef int number = <int>(sm - m.crossbar.sms) + 1
    cdef int64_t until = departure_ps + m.crossbar.slice_grid.slot_ps
    cdef Requester* own = requester_of(m, sm)
    cdef Reserved* reserved = reserved_of(m, slice)
    own.next_request_ps = departure_ps + own.slots_per_request * m.crossbar.slice_grid.slot_ps
    if reserved.by_sm == number:
        reserved.until_ps = until
    elif until > reserved.until_ps:
        reserved.by_sm, reserved.until_by_others_ps, reserved.until_ps = number, reserved.until_ps, until
    else:
        reserved.until_by_others_ps = max_i64(reserved.until_by_others_ps, until)


cdef int64_t send_interleaved(MemorySystem* m, SmPorts* sm, Slice* slice, int requests, int64_t t) noexcept nogil:
    return send_through_queue(m, sm, slice, requests, t, earliest_request_time, record_request)
