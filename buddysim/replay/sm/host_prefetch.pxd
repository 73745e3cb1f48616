"""Prefetching into the caches of the CPU that runs the simulator: for the warps, and the lines, that come next."""
from libc.stdint cimport int64_t, uint64_t

from buddysim.replay.l1.l1 cimport L1, L1s
from buddysim.replay.l2.l2 cimport l2_prefetch
from buddysim.replay.memory.address_map cimport locate_line
from buddysim.replay.memory.memory cimport MemorySystem, Slice
from buddysim.replay.primitives.address_map_simd cimport LineLocation, location_begin, locate_lines_simd
from buddysim.replay.primitives.cache cimport SectorCache, cache_prefetch
from buddysim.replay.primitives.compiler_hints cimport prefetch
from buddysim.replay.primitives.division cimport divide
from buddysim.replay.primitives.events cimport key_number
from buddysim.replay.primitives.port cimport BUCKET_BITS, PORT_BUCKETS, port_prefetch
from buddysim.replay.sm.issue_order cimport WARP_BITS, PickOp, Scheduler
from buddysim.replay.sm.stream cimport MANY_LINES, StreamOp, stream_bytes, stream_locations
from buddysim.replay.sm.warp cimport MAX_WARPS, Warp

cdef enum:
    PREFETCH_WARPS = 64  # warps remembered by HostPrefetcher
    STREAM_DISTANCE = 5  # events between the choice of a warp and the prefetch of its operation stream
    SETS_DISTANCE = 10   # events between that choice and the prefetch of the sets its lines map to
    LINES_DISTANCE = 8   # lines of one operation whose sets are prefetched ahead
    MAX_LINES = 256      # lines of an operation

# It affects no result.
cdef struct HostPrefetcher:
    Warp* warps[64]          # ring: warps that issue soon
    unsigned int at          # latest index of the ring, not reduced
    # During an operation of many lines, the next operation is prefetched in steps (`prefetch_next_op`).
    Scheduler* next          # scheduler that probably issues next, or NULL
    int next_sm              # its SM
    Warp* next_warps         # warps of that SM
    const StreamOp* located  # operation of many lines that probably comes next, or NULL
    int located_at           # index of its first line in `lines`
    LineLocation[512] lines  # of two operations, MAX_LINES each


cdef void prefetch_next_op(HostPrefetcher* prefetcher, const L1s* l1, const MemorySystem* m, PickOp pick,
                           int step) noexcept nogil


cdef inline void locate_lines(const MemorySystem* m, const SectorCache* l1, const uint64_t* lines, int n,
                              LineLocation* locations) noexcept nogil:
    """Locates the lines of an operation, words of `entry << 8 | masks`."""
    cdef int i
    if m.eight_at_a_time:
        locate_lines_simd(&m.rules, lines, n, locations)
        return
    for i in range(n):
        location_begin(&locations[i], lines[i])
        locate_line(m, l1, &locations[i])


cdef inline void prefetch_line(const L1s* l1, const MemorySystem* m, const L1* sm_l1, const LineLocation* at) noexcept nogil:
    """Prefetches the sets of a line into the CPU's cache."""
    cache_prefetch(&l1.cache, sm_l1.sets + at.l1_set)
    l2_prefetch(m, at)


cdef inline void prefetch_ports(const MemorySystem* m, const LineLocation* at) noexcept nogil:
    """Prefetches the ports of a line's slice; requests arrive at about the time of the last one."""
    cdef Slice* slice = &m.l2.slices[at.slice]
    cdef int64_t bucket = (m.last_slice_ps >> BUCKET_BITS) & (PORT_BUCKETS - 1)
    prefetch(slice.mshrs.next)
    prefetch(&slice.port.used[bucket])
    prefetch(&slice.compressor.used[(m.last_compressor_ps >> BUCKET_BITS) & (PORT_BUCKETS - 1)])
    if m.own_sets.data != NULL:
        prefetch(m.own_sets.data + at.own[0])
        prefetch(&m.own_sets.ports[divide(m.own_sets.unit_bytes, at.own[0])].port.used[bucket])


cdef inline void prefetch_ahead(HostPrefetcher* prefetcher, const Scheduler* scheduler, Warp* sm_warps, const L1s* l1,
                                const MemorySystem* m) noexcept nogil:
    """Prefetches the data of the scheduler's next warp into the CPU's cache, in three steps that depend on each other.

    Thousands of warps issue one after the other, each from its own stream: when a warp issues again, the CPU's caches hold nothing
    of it.
    """
    cdef Warp* warp = NULL
    cdef const LineLocation* at
    cdef unsigned int part
    prefetcher.at += 1
    if scheduler.n:
        warp = sm_warps + scheduler.slot[key_number(scheduler.first, WARP_BITS)]
        prefetch(warp)
    prefetcher.warps[prefetcher.at % PREFETCH_WARPS] = warp
    warp = prefetcher.warps[(prefetcher.at - STREAM_DISTANCE) % PREFETCH_WARPS]
    if warp:
        prefetch(warp.op)
        prefetch(<const char*>warp.op + 64)
    warp = prefetcher.warps[(prefetcher.at - SETS_DISTANCE) % PREFETCH_WARPS]
    if warp and warp.op.n_lines:
        for part in range(2, (stream_bytes(warp.op) + 63) // 64):
            prefetch(<const char*>warp.op + 64 * part)
        if warp.op.n_lines < MANY_LINES:
            at = stream_locations(warp.op)
            prefetch_line(l1, m, &l1.sms[warp.number // MAX_WARPS], at)
            port_prefetch(&m.l2.slices[at.slice].port, m.last_slice_ps)
            port_prefetch(&m.l2.slices[at.slice].compressor, m.last_compressor_ps)
