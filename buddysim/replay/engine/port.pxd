"""A port with a bandwidth: crossbar, L2 slice, (de)compressor, link, and the channels of `simple` device memory.

Requests reach a port out of order (one has waited for an MSHR or for metadata, the next has not), so a port keeps its use in
buckets of time, 65.5 ns each, up to 33 us ahead: a request takes what is left of the bucket that it arrives in and then of
the following ones. So a port never carries more than its bandwidth, one that idles delays nobody, and a late request does not
block an early one that happens to be simulated after it.

Costs are in 1/1024 ps, rounded up: no port is faster than its machine file says.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from buddysim.replay.engine.compiler_hints cimport prefetch, unlikely

cdef enum:
    PORT_BUCKETS = 512          # 33.6 us into the future
    BUCKET_BITS = 16            # log2 of a bucket's ps
    FINE_BITS = 10              # log2 of the cost units per ps
    BUCKET_FINE = 67108864      # cost units of a bucket

cdef struct Port:
    int64_t end                 # requests of buckets from here on go to `port_wait`: those not kept yet, or all (`queue_wait`)
    int64_t kept_end            # buckets from here on are not kept yet
    int64_t full_until          # all buckets before this one are full, or past
    uint32_t used[512]          # cost units taken of bucket b, at b % PORT_BUCKETS


cdef int64_t port_wait(Port* port, const int64_t* now, int64_t bucket, int64_t t, int64_t cost) noexcept nogil


cdef inline void port_prefetch(const Port* port, int64_t t) noexcept nogil:
    """Prefetches what a request that arrives at about `t` will need into the CPU's cache."""
    prefetch(port)
    prefetch(&port.used[(t >> BUCKET_BITS) & (PORT_BUCKETS - 1)])


cdef inline bint port_take(Port* port, int64_t t, int64_t cost, int64_t* bucket, int64_t* turn) noexcept nogil:
    """Takes room in the bucket of a request that arrives at `t`, if it has room; `turn`: as `port_turn` returns it."""
    cdef uint32_t* used
    cdef uint64_t before
    cdef int64_t after
    bucket[0] = t >> BUCKET_BITS
    bucket[0] = port.full_until if bucket[0] < port.full_until else bucket[0]
    used = &port.used[bucket[0] & (PORT_BUCKETS - 1)]
    before = used[0]
    after = before + cost
    if unlikely(after > BUCKET_FINE or bucket[0] >= port.end):
        return False
    used[0] = <uint32_t>after
    turn[0] = (bucket[0] << BUCKET_BITS) + <int64_t>(before >> FINE_BITS)
    return True


cdef inline int64_t port_turn(Port* port, const int64_t* now, int64_t t, int64_t cost) noexcept nogil:
    """Sends a request of `cost` (1/1024 ps, at least 1) through a port at which it arrives at `t`.

    `now` is the time of the event at hand: nothing arrives earlier any more. Returns when the port has passed what came before:
    the request's turn, or a time before `t`.
    """
    cdef int64_t bucket, turn
    if port_take(port, t, cost, &bucket, &turn):
        return turn
    return port_wait(port, now, bucket, t, cost)


cdef inline int64_t port_pass(Port* port, const int64_t* now, int64_t t, int64_t cost) noexcept nogil:
    """As `port_turn`, but returns when the request's turn comes, at the earliest `t`."""
    cdef int64_t turn = port_turn(port, now, t, cost)
    return turn if turn > t else t
