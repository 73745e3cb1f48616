"""Rare operations of a `Port`."""
from buddysim.replay.primitives.horizon cimport far_page, far_page_create, far_page_drop

cdef enum:
    PAGE_BITS = 9  # log2 of the buckets of a page, as many as in the ring


cdef void take_over_page(Port* port, Horizon* horizon, int64_t page, int64_t first, int64_t end) noexcept nogil:
    """Copies the buckets of a page in [first, end) into the ring; drops the page if it ends there."""
    cdef const uint32_t* used = <const uint32_t*>far_page(horizon, port, page)
    cdef int64_t bucket
    if not used:
        return
    for bucket in range(max(first, page << PAGE_BITS), min(end, page + 1 << PAGE_BITS)):
        port.used[bucket & (PORT_BUCKETS - 1)] = used[bucket & (PORT_BUCKETS - 1)]
    if end >= page + 1 << PAGE_BITS:
        far_page_drop(horizon, port, page)
        port.far_pages -= 1


cdef void port_advance(Port* port, Horizon* horizon) noexcept nogil:
    """Moves the ring to begin at the current event."""
    cdef int64_t bucket, page, base = horizon.now_ps >> BUCKET_BITS, before = port.window_end, end = base + PORT_BUCKETS
    if end <= before:
        return
    for bucket in range(before if before > base else base, end):
        port.used[bucket & (PORT_BUCKETS - 1)] = 0
    page = before >> PAGE_BITS
    while port.far_pages and page << PAGE_BITS < end:
        take_over_page(port, horizon, page, before if before > base else base, end)
        page += 1
    port.end = port.window_end = end
    if port.first_open_bucket < base:
        port.first_open_bucket = base


cdef inline uint32_t* used_in_bucket(Port* port, Horizon* horizon, int64_t bucket) noexcept nogil:
    """What is used of a bucket; NULL if it cannot be recorded."""
    cdef uint32_t* used
    if bucket < port.window_end:
        return &port.used[bucket & (PORT_BUCKETS - 1)]
    used = <uint32_t*>far_page(horizon, port, bucket >> PAGE_BITS)
    if not used:
        used = <uint32_t*>far_page_create(horizon, port, bucket >> PAGE_BITS)
        if not used:
            return NULL
        port.far_pages += 1
    return used + (bucket & (PORT_BUCKETS - 1))


cdef inline void record_full_buckets(Port* port, const Horizon* horizon, int64_t first, int64_t end) noexcept nogil:
    """Records that the buckets in [first, end) are full: extends the known ones, or replaces fewer or past ones."""
    if port.full_begin <= first <= port.full_end:
        port.full_end = end
    elif end - first > port.full_end - port.full_begin or port.full_end <= horizon.now_ps >> BUCKET_BITS:
        port.full_begin, port.full_end = first, end


cdef int64_t port_wait(Port* port, Horizon* horizon, int64_t bucket, int64_t t, int64_t cost) noexcept nogil:
    """`port_transfer` for a request that does not fit in `bucket`, or lies beyond the ring."""
    cdef int64_t grant_ps, remaining = cost, first
    cdef uint32_t* used
    port_advance(port, horizon)
    first = bucket
    while True:
        if port.full_begin <= bucket < port.full_end:
            bucket = port.full_end
        used = used_in_bucket(port, horizon, bucket)
        if not used or used[0] + remaining <= BUCKET_FINE:
            break
        remaining -= BUCKET_FINE - used[0]
        used[0] = BUCKET_FINE
        if bucket == port.first_open_bucket:
            port.first_open_bucket += 1
        bucket += 1
    if bucket > first:
        record_full_buckets(port, horizon, first, bucket)
    if not used:
        return t
    grant_ps = (bucket << BUCKET_BITS) + (used[0] + remaining - cost >> FINE_BITS)
    used[0] += <uint32_t>remaining
    return grant_ps if grant_ps > t else t


cdef int64_t port_peek(const Port* port, const Horizon* horizon, int64_t t, int64_t cost) noexcept nogil:
    """The result of `port_transfer`, without its effects."""
    cdef int64_t grant_ps, used, remaining = cost, bucket = t >> BUCKET_BITS
    cdef const uint32_t* page
    while True:
        used = 0
        if bucket < port.window_end:
            used = port.used[bucket & (PORT_BUCKETS - 1)]
        else:
            page = <const uint32_t*>far_page(horizon, port, bucket >> PAGE_BITS)
            if page:
                used = page[bucket & (PORT_BUCKETS - 1)]
        if used + remaining <= BUCKET_FINE:
            break
        remaining -= BUCKET_FINE - used
        bucket += 1
    grant_ps = (bucket << BUCKET_BITS) + (used + remaining - cost >> FINE_BITS)
    return grant_ps if grant_ps > t else t
