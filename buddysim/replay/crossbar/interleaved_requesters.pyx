"""Arbitration between the SMs whose requests meet at a slice, with input queues."""
from libc.stdint cimport int64_t

from buddysim.replay.crossbar.input_queues cimport send_through_queue
from buddysim.replay.engine.arena cimport arena_zeroed
from buddysim.replay.engine.extremes cimport max_i64
from buddysim.replay.engine.memory cimport Slice, SmPorts

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


cdef int interleaving_init(Arena* arena, MemorySystem* m) except -1:
    """Sets up the arbitration, after the input queues."""
    cdef Interleaving* state = <Interleaving*>arena_zeroed(arena, 1, sizeof(Interleaving))
    state.requesters = <Requester*>arena_zeroed(arena, m.crossbar.n_sms, sizeof(Requester))
    state.reserved = <Reserved*>arena_zeroed(arena, m.l2.n_slices.by, sizeof(Reserved))
    m.crossbar.arbitration_state, m.crossbar.send_requests = state, send_requests
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


cdef int64_t send_requests(MemorySystem* m, SmPorts* sm, Slice* slice, int requests, int64_t t) noexcept nogil:
    return send_through_queue(m, sm, slice, requests, t, earliest_request_time, record_request)
