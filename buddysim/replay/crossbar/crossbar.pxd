"""Requests and replies through ports; or through the hooks that replace ports."""
from libc.stdint cimport int64_t

from buddysim.replay.memory.memory cimport MemorySystem, Slice, SmPorts
from buddysim.replay.primitives.arena cimport Arena
from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.kinds cimport REPLY_PORT, REQUEST_PORT, SLICE_PORT
from buddysim.replay.primitives.waits cimport count_wait, port_transfer_counted


cdef inline int64_t send_request(MemorySystem* m, SmPorts* sm, Slice* slice, int n, int requests, int64_t t) noexcept nogil:
    """Sends a request for `n` sectors of a line, `requests` of them through the SM's port. Returns its arrival at the slice."""
    if unlikely(m.crossbar.send_requests != NULL):
        m.last_slice_ps = m.crossbar.send_requests(m, sm, slice, n, t) + m.crossbar.request_ps
        return m.last_slice_ps
    t = port_transfer_counted(&m.waits, REQUEST_PORT, &sm.requests, t, requests * m.crossbar.request_cost)
    m.last_slice_ps = t + m.crossbar.request_ps
    return m.last_slice_ps


cdef inline int64_t pass_slice(MemorySystem* m, Slice* slice, int n, int64_t t) noexcept nogil:
    """The start at its slice of a request for `n` sectors that arrives at `t`; `send_requests` has reserved it already."""
    if unlikely(m.crossbar.send_requests != NULL):
        return t
    return port_transfer_counted(&m.waits, SLICE_PORT, &slice.port, t, n * m.l2.slice_cost)


cdef inline int64_t reply_arrival(MemorySystem* m, SmPorts* sm, Slice* slice, int n, int64_t t) noexcept nogil:
    """Sends `n` sectors that a slice has at `t` to an SM; returns the time at which the SM can use the last one."""
    cdef int64_t departure_ps
    if unlikely(m.crossbar.send_replies != NULL):
        departure_ps = m.crossbar.send_replies(m, sm, slice, n, t)
        count_wait(&m.waits, REPLY_PORT, max_i64(0, departure_ps - (n - 1) * m.crossbar.sector_ps - t))
        return departure_ps + m.crossbar.reply_ps + (n - 1) * m.crossbar.request_lag_ps
    t += m.crossbar.reply_ps
    t = port_transfer_counted(&m.waits, REPLY_PORT, &sm.replies, t, n * m.crossbar.reply_cost)
    return t + (n - 1) * m.crossbar.sector_ps


cdef int64_t between_slices(MemorySystem* m, Slice* sender, Slice* receiver, int64_t latency_ps, int64_t t) noexcept nogil
cdef int crossbar_init(Arena* arena, MemorySystem* m, dict n) except -1
