"""What a `Port` rarely does (forgets the past, makes a request wait), and a class over one that tests compare with its twin."""
from libc.stdint cimport int64_t, uint32_t


cdef void port_rebase(Port* port, int64_t base) noexcept nogil:
    """Forgets the buckets before `base`."""
    cdef int64_t bucket
    if base >= port.kept_end:
        for bucket in range(PORT_BUCKETS):
            port.used[bucket] = 0
    else:
        for bucket in range(port.kept_end - PORT_BUCKETS, base):
            port.used[bucket & (PORT_BUCKETS - 1)] = 0
    port.end = port.kept_end = base + PORT_BUCKETS
    if port.full_until < base:
        port.full_until = base


cdef int64_t port_wait(Port* port, const int64_t* now, int64_t bucket, int64_t t, int64_t cost) noexcept nogil:
    """`port_pass` for a request that does not fit in `bucket`, or lies beyond the buckets kept."""
    cdef int64_t turn, rest = cost
    cdef uint32_t* used
    if (now[0] >> BUCKET_BITS) + PORT_BUCKETS > port.kept_end:
        port_rebase(port, now[0] >> BUCKET_BITS)
    while True:
        if bucket >= port.kept_end:
            port_rebase(port, bucket - PORT_BUCKETS + 1)
        used = &port.used[bucket & (PORT_BUCKETS - 1)]
        if used[0] + rest <= BUCKET_FINE:
            break
        rest -= BUCKET_FINE - used[0]
        used[0] = BUCKET_FINE
        if bucket == port.full_until:
            port.full_until += 1
        bucket += 1
    turn = (bucket << BUCKET_BITS) + (used[0] + rest - cost >> FINE_BITS)
    used[0] += <uint32_t>rest
    return turn if turn > t else t


cdef class LonePort:
    """One port driven request by request: the reference model is in `tests/reference/replay/`."""

    cdef Port port

    def request(self, int64_t now_ps, int64_t t_ps, int64_t cost):
        """Sends a request of `cost` (1/1024 ps) that arrives at `t_ps`, no earlier than `now_ps`; returns when its turn comes."""
        return port_pass(&self.port, &now_ps, t_ps, cost)
