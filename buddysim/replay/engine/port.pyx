"""Rare operations of a `Port`, and a class for tests that compare it with its reference model."""
from libc.stdint cimport int64_t, uint32_t


cdef void port_rebase(Port* port, int64_t base) noexcept nogil:
    """Moves the window to begin at bucket `base`."""
    cdef int64_t bucket
    if base >= port.window_end:
        for bucket in range(PORT_BUCKETS):
            port.used[bucket] = 0
    else:
        for bucket in range(port.window_end - PORT_BUCKETS, base):
            port.used[bucket & (PORT_BUCKETS - 1)] = 0
    port.end = port.window_end = base + PORT_BUCKETS
    if port.first_open_bucket < base:
        port.first_open_bucket = base


cdef int64_t port_wait(Port* port, const int64_t* now, int64_t bucket, int64_t t, int64_t cost) noexcept nogil:
    """`port_transfer` for a request that does not fit in `bucket`, or lies beyond the window."""
    cdef int64_t grant_ps, remaining = cost
    cdef uint32_t* used
    if (now[0] >> BUCKET_BITS) + PORT_BUCKETS > port.window_end:
        port_rebase(port, now[0] >> BUCKET_BITS)
    while True:
        if bucket >= port.window_end:
            port_rebase(port, bucket - PORT_BUCKETS + 1)
        used = &port.used[bucket & (PORT_BUCKETS - 1)]
        if used[0] + remaining <= BUCKET_FINE:
            break
        remaining -= BUCKET_FINE - used[0]
        used[0] = BUCKET_FINE
        if bucket == port.first_open_bucket:
            port.first_open_bucket += 1
        bucket += 1
    grant_ps = (bucket << BUCKET_BITS) + (used[0] + remaining - cost >> FINE_BITS)
    used[0] += <uint32_t>remaining
    return grant_ps if grant_ps > t else t


cdef class LonePort:
    """One port, for tests; its reference model is in `tests/reference/replay/engine/`."""

    cdef Port port

    def request(self, int64_t now_ps, int64_t t_ps, int64_t cost):
        """Sends a request of `cost` port units that arrives at `t_ps`, not before `now_ps`; returns its grant in ps."""
        return port_transfer(&self.port, &now_ps, t_ps, cost)
