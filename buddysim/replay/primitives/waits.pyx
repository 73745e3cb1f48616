"""Waits at ports."""
from buddysim.replay.primitives.port cimport port_wait


cdef int64_t port_wait_counted(const Waits* waits, Queue queue, Port* port, int64_t bucket, int64_t t,
                               int64_t cost) noexcept nogil:
    """`port_transfer_counted` for a port whose bucket is full, or if waits are counted."""
    cdef int64_t grant_ps = port_wait(port, waits.horizon, bucket, t, cost)
    if waits.bins != NULL:
        port.end = 0            # so that the next request is counted here, too
        count_wait(waits, queue, grant_ps - t)
    return grant_ps
