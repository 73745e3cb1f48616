"""What an SM does less often, out of the straight path of its loads and stores."""


cdef int64_t load_past_l1(MemorySystem* m, SmPorts* sm, const LinePlace* at, unsigned int wanted,
                          bint for_atomic, int64_t t) noexcept nogil:
    """Sectors of a line for an atomic, or for a load that does not look into the L1; returns when the last can be used."""
    return l2_load(m, sm, at, wanted, for_atomic, t)


cdef void wait_soonest(Warp* warp, Pending* later) noexcept nogil:
    """Has the warp wait for the load that is used first: no more can be remembered."""
    cdef int i, soonest = 0
    cdef Pending* load
    for i in range(1, MAX_PENDING):
        if later[i - 1].use_v_ps < warp_pending(warp, later, soonest).use_v_ps:
            soonest = i
    load = warp_pending(warp, later, soonest)
    warp.shift_ps = larger(warp.shift_ps, load.arrival_ps - load.use_v_ps)
    load[0] = later[MAX_LATER - 1]
    warp.n_pending -= 1
