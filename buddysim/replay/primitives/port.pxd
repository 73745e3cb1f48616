"""A port with a bandwidth: crossbar, L2 slice, compressor, link, and channels of device memory without banks.

Requests reach a port out of order, as only some have waited for an MSHR or for a size. So a port records its use in buckets
of time, 65.5 ns each. A request uses what is free in the bucket in which it arrives, and then in the following ones. Thus a port
never exceeds its bandwidth, an idle port delays no request, and a late request does not block an early one that is simulated
after it, however far ahead it is. A port has the next 33 us in a ring, and what lies beyond in the run's `Horizon`.

Costs are in port units of 1/1024 ps, rounded up: no port exceeds the bandwidth of the machine file.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from buddysim.replay.primitives.compiler_hints cimport prefetch, unlikely
from buddysim.replay.primitives.horizon cimport Horizon

cdef enum:
    PORT_BUCKETS = 512      # of the ring: 33.6 us into the future
    BUCKET_BITS = 16        # log2 of a bucket's ps
    FINE_BITS = 10          # log2 of the port units per ps
    BUCKET_FINE = 67108864  # port units of a bucket

cdef struct Port:
    int64_t end                # requests of this bucket and later ones take `port_wait`; 0: all of them do
    int64_t window_end         # first bucket after the ring
    int64_t first_open_bucket  # all buckets before it are full or past
    uint32_t used[512]         # port units used in bucket b, at index b % PORT_BUCKETS
    int64_t full_begin         # buckets from full_begin to before full_end are full
    int64_t full_end
    int64_t far_pages          # pages of later buckets in the `Horizon`


cdef int64_t port_wait(Port* port, Horizon* horizon, int64_t bucket, int64_t t, int64_t cost) noexcept nogil
cdef int64_t port_peek(const Port* port, const Horizon* horizon, int64_t t, int64_t cost) noexcept nogil


cdef inline void port_prefetch(const Port* port, int64_t t) noexcept nogil:
    """Prefetches the bucket of a request that arrives at about `t` into the CPU's cache."""
    prefetch(port)
    prefetch(&port.used[(t >> BUCKET_BITS) & (PORT_BUCKETS - 1)])


cdef inline bint port_try_reserve(Port* port, int64_t t, int64_t cost, int64_t* bucket, int64_t* grant_ps) noexcept nogil:
    """Reserves `cost` in the bucket of a request that arrives at `t`, if it fits; `grant_ps` as of `port_grant_time`."""
    cdef uint32_t* used
    cdef uint64_t before
    cdef int64_t after
    bucket[0] = t >> BUCKET_BITS
    bucket[0] = port.first_open_bucket if bucket[0] < port.first_open_bucket else bucket[0]
    used = &port.used[bucket[0] & (PORT_BUCKETS - 1)]
    before = used[0]
    after = before + cost
    if unlikely(after > BUCKET_FINE or bucket[0] >= port.end):
        return False
    used[0] = <uint32_t>after
    grant_ps[0] = (bucket[0] << BUCKET_BITS) + <int64_t>(before >> FINE_BITS)
    return True


cdef inline int64_t port_grant_time(Port* port, Horizon* horizon, int64_t t, int64_t cost) noexcept nogil:
    """Sends a request of `cost` port units, at least 1, through a port at which it arrives at `t`.

    No request arrives before the current event. Returns the time at which the port grants the request; it may be before `t`.
    """
    cdef int64_t bucket, grant_ps
    if port_try_reserve(port, t, cost, &bucket, &grant_ps):
        return grant_ps
    return port_wait(port, horizon, bucket, t, cost)


cdef inline int64_t port_transfer(Port* port, Horizon* horizon, int64_t t, int64_t cost) noexcept nogil:
    """Sends a request through a port, as `port_grant_time`; returns the grant, not before `t`."""
    cdef int64_t grant_ps = port_grant_time(port, horizon, t, cost)
    return grant_ps if grant_ps > t else t
