"""Rare operations of a warp."""


cdef void wait_for_earliest_arrival(Warp* warp, PendingLoad* other_pending) noexcept nogil:
    """Waits for the pending load that arrives first, before the operation at the warp's clock, to make an entry free."""
    cdef int i, earliest = 0
    cdef PendingLoad* load
    for i in range(1, MAX_PENDING):
        if other_pending[i - 1].arrival_ps < warp_pending(warp, other_pending, earliest).arrival_ps:
            earliest = i
    load = warp_pending(warp, other_pending, earliest)
    warp.stall_ps = max_i64(warp.stall_ps, load.arrival_ps - warp.clock_ps)
    load[0] = other_pending[MAX_OTHER_PENDING - 1]
    warp.n_pending_loads -= 1
