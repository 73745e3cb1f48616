"""The memory system below the L1s: crossbar, L2 slices, device memory and link.

A request is simulated to its end when it issues. It reserves its use of ports and channels for the times at which it arrives
there (`port`, `dram`).
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from buddysim.replay.engine.arena cimport Arena, arena_zeroed
from buddysim.replay.engine.cache cimport (
    DIRTY, PARTIAL, Line, CacheSet, SectorCache, mark_pending, cache_find, pending_at, cache_prefetch,
    cache_replace, cache_set, cache_touch, sector_count,
)
from buddysim.replay.engine.reservation_table cimport ReservationTable, SlotGrid
from buddysim.replay.engine.division cimport Divisor
from buddysim.replay.dram.dram cimport DeviceLocation, Dram, banked_read, dram_write
from buddysim.replay.engine.extremes cimport max_i64
from buddysim.replay.engine.compiler_hints cimport prefetch, unlikely
from buddysim.replay.engine.horizon cimport Horizon
from buddysim.replay.engine.kinds cimport (
    DRAM_WRITE, HISTOGRAM_BINS, L2_MSHR, LINK_READ, LINK_WRITE, REPLY_PORT, REQUEST_PORT,
    SLICE_PORT, TRAFFIC_KINDS, Queue, Traffic,
)
from buddysim.replay.engine.address_map_simd cimport LineLocation, LocationRules
from buddysim.replay.link.link cimport READ_DATA, WRITE_DATA, Link, link_bytes, link_read_cost, link_write_cost
from buddysim.replay.engine.port cimport FINE_BITS, Port, port_transfer, port_try_reserve

cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long x) noexcept nogil

# Lookups count hits, accesses that join a miss in flight (MSHR merges), and the rest, which miss.
cdef struct Counters:
    int64_t memory_instructions
    int64_t line_accesses              # lines of all memory instructions, at the L1
    int64_t l1_conflict_cycles         # L1 cycles beyond one per line, with l1.bank_conflicts = "tag_and_data"
    int64_t load_sectors               # sectors requested by loads and atomics
    int64_t store_sectors
    int64_t l1_accesses                # sectors of loads looked up in an L1
    int64_t l1_hits
    int64_t l1_mshr_merges             # sectors in flight for an earlier load
    int64_t l1_lines
    int64_t l1_line_hits
    int64_t l2_read_hits               # sectors
    int64_t l2_read_mshr_merges        # sectors
    int64_t l2_writes                  # sectors of stores at the L2
    int64_t l2_write_hits
    int64_t l2_lines
    int64_t l2_line_hits
    int64_t l2_read_misses             # sectors requested from memory: read hits, merges and these are all reads
    int64_t fill_sectors               # sectors made valid by fills
    int64_t sectors_made_dirty         # clean sectors that became dirty
    int64_t writeback_sectors          # dirty sectors that left the L2
    int64_t dirty_sectors_overwritten  # dirty sectors that a memcpy or memset overwrote in memory
    int64_t dirty_sectors_freed        # dirty sectors of freed allocations
    int64_t load_ps                    # sum over `load_histogram`: issue to arrival of loads that miss the L1
    int64_t[TRAFFIC_KINDS] link_read   # bytes by Traffic
    int64_t[TRAFFIC_KINDS] link_write  # bytes by Traffic
    int64_t[HISTOGRAM_BINS] load_histogram
    int64_t[HISTOGRAM_BINS] memory_histogram

cdef struct AllocationState:
    uint32_t first_entry
    uint32_t entries
    int placement                 # Placement
    int device_sectors            # of each entry, 0 to 4; 0: the 8 B of a 16x target
    int64_t fills
    int64_t writebacks
    int64_t overflow_accesses     # fills and write-backs that also reached memory behind the link
    uint64_t first_line           # address in the trace / 128
    uint64_t first_writer_launch  # the high bits of `entry_classes` hold the classes after stores of the launches
    uint64_t last_writer_launch   # first_writer_launch to last_writer_launch (none if reversed)
    uint32_t next                 # number + 1 of the allocation behind it in its last page; 0: none (`allocations`)
    uint32_t first_lazy_entry     # entries that can be looked up only after `allocation_materialize`:
    uint32_t end_lazy_entry       # first_lazy_entry to before end_lazy_entry

# A ring: MSHRs are taken in order, so the next one is the one taken longest ago.
cdef struct Mshrs:
    int64_t* free_ps  # [n]: when each comes free
    int64_t* end
    int64_t* next

# Crossbar ports of one SM. Padded to full cache lines of the CPU.
cdef struct SmPorts:
    Port requests
    Port replies
    int64_t queue_free_ps                 # with input queues: when the request at the head of the SM's queue has left
    ReservationTable* reply_reservations  # with input queues: of replies to the SM, a slot per sector; else NULL
    int64_t[2] reserved

# One slice of the L2, except for its lines. Fields that a load needs begin cache lines of the CPU.
cdef struct Slice:
    Mshrs mshrs
    ReservationTable* request_reservations  # with input queues: a slot per sector; NULL: the crossbar uses ports
    int64_t first_pseudo                    # first of the pseudo-channels behind it
    Port port
    ReservationTable* reply_reservations    # with input queues: of replies to SMs, a slot per sector
    int64_t[4] reserved
    Port compressor                         # compressor and decompressor
    Port atomics                            # the slice's atomic unit
    int64_t[4] reserved_end

# A port, padded to full cache lines of the CPU.
cdef struct PaddedPort:
    Port port
    int64_t[2] reserved

# Sets and ports of a scheme's own cache, which the engine prefetches into the CPU's cache for a line.
cdef struct OwnSets:
    const char* data    # a line's set is at `own[0]`; NULL: the scheme has no such cache
    Divisor unit_bytes  # of the sets that a port serves
    PaddedPort* ports

cdef struct MemorySystem

ctypedef int64_t (*FillOp)(MemorySystem* m, Slice* slice, const LineLocation* at, unsigned int* sectors,
                           int64_t t) noexcept nogil      # `sectors`: requested sectors; becomes the filled ones
ctypedef int64_t (*WritebackOp)(MemorySystem* m, Slice* slice, uint32_t entry, Line line, int new_class,
                                int64_t t) noexcept nogil      # `new_class`: size class of the entry after it
ctypedef int64_t (*AccessHook)(MemorySystem* m, uint32_t entry, int64_t t) noexcept nogil
ctypedef int64_t (*PartitionedLoadOp)(MemorySystem* m, const SmPorts* sm, const LineLocation* at, unsigned int requested,
                                      bint for_atomic, int64_t t) noexcept nogil     # as `home_slice_load`
ctypedef int64_t (*RemoteStoreOp)(MemorySystem* m, const SmPorts* sm, const LineLocation* at,
                                  unsigned int written) noexcept nogil      # returns the added latency of a store
ctypedef int64_t (*SendOp)(MemorySystem* m, SmPorts* sm, Slice* slice, int sectors, int64_t t) noexcept nogil
ctypedef int64_t (*DirtiedOp)(MemorySystem* m, Slice* slice, const CacheSet* set, int64_t t) noexcept nogil
ctypedef bint (*MayCacheOp)(MemorySystem* m, uint32_t entry) noexcept nogil
ctypedef int64_t (*WakeHook)(MemorySystem* m, int warp, bint at_end, int64_t t) noexcept nogil
ctypedef void (*DueHook)(MemorySystem* m) noexcept nogil
ctypedef void (*WrittenHook)(MemorySystem* m, uint32_t first_entry, uint32_t end_entry) noexcept nogil

# Costs in port units.
cdef struct Crossbar:
    int64_t request_ps                  # L1 miss to arrival at the slice
    int64_t reply_ps                    # slice to use in the SM
    int64_t sector_ps                   # between two sectors of a reply
    int64_t reply_cost                  # one sector through an SM's reply port
    int64_t request_cost                # one sector of a store, or a load's request, through an SM's request port
    SlotGrid slice_grid                 # with input queues: slots of a slice, in each direction
    SlotGrid reply_grid                 # with input queues: slots of replies to an SM
    int64_t queue_sector_ps             # with input queues: one sector out of an SM's queue
    SendOp send_requests                # sends requests to a slice and returns when the last has left; NULL: ports
    SendOp send_replies                 # the same of a slice's replies to an SM
    void* arbitration_state             # of what arbitrates between SMs, in the run's arena
    int n_sms
    SmPorts* sms                        # [sms]

cdef struct L2:
    int64_t slice_cost                  # one sector through a slice's port
    int64_t dirty_store_cost            # added for each sector that a store finds dirty; 0: none
    int64_t atomic_cost                 # one sector through a slice's atomic unit
    Slice* slices                       # [slices]
    Divisor n_slices
    int interleave_shift                # log2 of the consecutive lines in one slice
    Divisor pseudo_per_slice            # pseudo-channels behind a slice
    SectorCache cache
    DirtiedOp dirtied                   # called after a store or atomic; returns when its set's write-backs are accepted; NULL
    int max_dirty_sectors               # per set, with `dirtied`
    uint32_t partitions
    Divisor partition_slices            # slices per partition
    uint32_t partition_sms              # SMs per partition; the last one may have fewer
    int64_t remote_latency_ps           # added to an access that crosses to another partition, both directions together
    bint fetch_pairs                    # misses on uncompressed device memory fetch aligned pairs of sectors
    unsigned int extra_fetch_mask       # sectors added to the current fill by `fetch_pairs`
    uint8_t* classes                    # [ways of all slices]: size class of the entry after the last store to the line
    PartitionedLoadOp partitioned_load  # with l2.partitions > 1 (`partitions`), else NULL
    RemoteStoreOp remote_store_delay    # with l2.partitions > 1, else NULL

cdef struct MemorySystem:
    # Hooks of the scheme; NULL where it needs none, except `fill` and `writeback`
    FillOp fill
    WritebackOp writeback
    AccessHook on_access                # returns when an access that reaches the L2 at `t` may look up its line
    MayCacheOp may_cache                # may the L2 hold an entry that a memcpy or memset wrote? NULL: yes
    WakeHook on_wake                    # returns when a warp that could issue at `t` may issue; at most `t`: now
    WrittenHook on_written              # a memcpy or memset wrote these entries
    DueHook on_due                      # called before the first event after `due_ps`
    int64_t due_ps                      # a time of the scheme's; NEVER: none
    int warp                            # with `on_wake`: number of the warp whose instruction is simulated
    void* scheme_state                  # the scheme's own
    OwnSets own_sets                    # likewise, to prefetch
    Horizon horizon                     # time of the current event, and reservations far ahead of it
    # Hints for prefetching into the CPU's cache: the next request arrives at about the same time.
    int64_t last_slice_ps               # arrival of the last request at a slice
    int64_t last_compressor_ps          # arrival of the last entry at a compressor
    Crossbar crossbar
    L2 l2
    const SectorCache* l1               # L1s of all SMs
    # Device memory and link
    Dram dram
    Link link
    # Address map
    LocationRules rules
    bint eight_at_a_time                # the CPU locates eight lines at a time (`address_map_simd`)
    # Allocations and their entries
    int64_t n_entries
    bint sized                          # the scheme uses entry sizes
    uint8_t* entry_classes              # [n_entries]: size class | class after stores of some launches << 4
    int n_allocations
    AllocationState* allocations        # [n_allocations], and a sentinel at each end (`allocations`)
    AllocationState* last_allocation    # result of the last lookup
    uint32_t* allocation_of_page        # [n_entries / 64]: number + 1 of the first live allocation in 64 entries; 0: none
    uint32_t* live                      # [n_live]: numbers of the live allocations, by address in the trace
    int64_t n_live
    Counters count
    int64_t* waits                      # [QUEUES][HISTOGRAM_BINS], without zero waits of some queues; NULL: not counted
    bint generic_reads                  # reads of device memory go through `device_fetch_generic`


cdef int64_t port_wait_counted(MemorySystem* m, Queue queue, Port* port, int64_t bucket, int64_t t, int64_t cost) noexcept nogil
cdef int64_t device_fetch_generic(MemorySystem* m, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil


cdef int64_t link_request(MemorySystem* m, int64_t payload, int64_t t) noexcept nogil


cdef inline void histogram_add(int64_t* bins, int64_t ps) noexcept nogil:
    bins[HISTOGRAM_BINS - 1 - leading_zeros(<unsigned long long>ps | 1)] += 1


cdef inline void count_wait(MemorySystem* m, Queue queue, int64_t ps) noexcept nogil:
    """Counts a wait of a request."""
    if unlikely(m.waits != NULL):
        histogram_add(m.waits + HISTOGRAM_BINS * <int>queue, ps)


cdef inline int64_t port_transfer_counted(MemorySystem* m, Queue queue, Port* port, int64_t t, int64_t cost) noexcept nogil:
    """`port_transfer`; counts the wait."""
    cdef int64_t bucket, grant_ps
    if port_try_reserve(port, t, cost, &bucket, &grant_ps):
        return max_i64(grant_ps, t)
    return port_wait_counted(m, queue, port, bucket, t, cost)


cdef inline int64_t device_fetch(MemorySystem* m, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    """`dram_read`; counts the wait, which is the latency beyond that of a row hit on an idle channel."""
    cdef DeviceLocation copy
    if unlikely(m.generic_reads):
        copy = location[0]      # so that the compiler can keep `location` in registers
        return device_fetch_generic(m, &copy, bursts, t)
    return banked_read(&m.dram, location, bursts, t + m.dram.before_ps) + m.dram.after_ps


cdef inline int64_t device_read(MemorySystem* m, const DeviceLocation* location, int bursts, Traffic kind,
                                int64_t t) noexcept nogil:
    """`device_fetch`; counts the bursts."""
    location.channel.moved[<int>kind] += bursts
    return device_fetch(m, location, bursts, t)


cdef inline int64_t device_write(MemorySystem* m, const DeviceLocation* location, int bursts, Traffic kind,
                                 int64_t t) noexcept nogil:
    """`dram_write`; counts the wait."""
    cdef int64_t accepted_ps = dram_write(&m.dram, location, bursts, kind, t)
    count_wait(m, DRAM_WRITE, accepted_ps - t)
    return accepted_ps


cdef inline int mshrs_init(Arena* arena, Mshrs* mshrs, uint32_t n) except -1:
    """Creates `n` free MSHRs."""
    mshrs.free_ps = <int64_t*>arena_zeroed(arena, n, sizeof(int64_t))
    mshrs.end = mshrs.free_ps + n
    mshrs.next = mshrs.free_ps
    return 0


cdef inline int64_t* mshr_pop(Mshrs* mshrs) noexcept nogil:
    """Takes the next MSHR. Points to the time at which it comes free; the caller stores the new time."""
    cdef int64_t* accepted_ps = mshrs.next
    mshrs.next = accepted_ps + 1 if accepted_ps + 1 != mshrs.end else mshrs.free_ps
    return accepted_ps


cdef inline int64_t* mshr_pop_earlier(Mshrs* mshrs) noexcept nogil:
    """`mshr_pop` of the one that comes free first among the next two MSHRs."""
    cdef int64_t* accepted_ps = mshr_pop(mshrs)
    cdef int64_t free_ps = accepted_ps[0]
    if mshrs.next[0] < free_ps:
        accepted_ps[0] = mshrs.next[0]
        mshrs.next[0] = free_ps
    return accepted_ps


cdef inline AllocationState* allocation_of(MemorySystem* m, uint32_t entry) noexcept nogil:
    """The live allocation that contains an entry; often that of the last lookup."""
    cdef AllocationState* allocation = m.last_allocation
    if entry - allocation.first_entry >= allocation.entries:
        allocation = m.allocations - 1 + m.allocation_of_page[entry >> 6]
        while entry - allocation.first_entry >= allocation.entries:
            allocation = m.allocations - 1 + allocation.next
        m.last_allocation = allocation
    return allocation


cdef inline int64_t link_read(MemorySystem* m, int64_t payload, Traffic kind, int64_t t) noexcept nogil:
    """Reads `payload` bytes behind the link for an L2 slice, at `t`; returns their arrival there."""
    cdef int64_t total = link_bytes(&m.link, payload, READ_DATA)
    cdef int64_t cost = link_read_cost(&m.link, total)
    if unlikely(m.link.packets != NULL):
        t = link_request(m, payload, t)
    m.count.link_read[<int>kind] += payload
    m.link.read_bytes += total
    return port_transfer_counted(m, LINK_READ, &m.link.ports[0], t, cost) + m.link.read_ps + (cost >> FINE_BITS)


cdef inline int64_t link_write(MemorySystem* m, int64_t payload, Traffic kind, int64_t t) noexcept nogil:
    """Posts a write of `payload` bytes behind the link at `t`; returns the time at which the link accepts them."""
    cdef int64_t total = link_bytes(&m.link, payload, WRITE_DATA)
    m.count.link_write[<int>kind] += payload
    m.link.write_bytes += total
    return port_transfer_counted(m, LINK_WRITE, &m.link.ports[1], t, link_write_cost(&m.link, total))


cdef inline uint8_t* l2_class(const MemorySystem* m, const CacheSet* set, int64_t way) noexcept nogil:
    """The size class of a line's entry after the last store to the line."""
    return m.l2.classes + ((<char*>set.tags - m.l2.cache.set_data) >> 4) + way        # a way takes 16 B of its set


cdef inline int64_t evict_line(MemorySystem* m, Slice* slice, uint32_t entry, const CacheSet* set, int64_t way,
                               int64_t t) noexcept nogil:
    """Writes back the dirty sectors of a way that holds `entry`, by the scheme; returns the time at which the way is free."""
    cdef Line line = set.lines[way]
    cdef unsigned int dirty = line >> DIRTY & 15
    if not dirty:
        return t
    m.count.writeback_sectors += sector_count(dirty)
    return m.writeback(m, slice, entry, line, l2_class(m, set, way)[0], t)


cdef inline void l2_prefetch(const MemorySystem* m, const LineLocation* at) noexcept nogil:
    """Prefetches the L2 set and the size class of a line into the CPU's cache."""
    cache_prefetch(&m.l2.cache, at.l2_set)
    prefetch(m.entry_classes + at.entry)


cdef inline int64_t l2_way(MemorySystem* m, Slice* slice, uint32_t entry, const CacheSet* set, unsigned int* line,
                           int64_t* t) noexcept nogil:
    """The way of an entry's line, evicted if the line misses; `line` becomes its state, `t` the time at which the way is free."""
    cdef int64_t way = cache_find(&m.l2.cache, set, entry)
    cdef uint32_t evicted_entry
    m.count.l2_lines += 1
    if way >= 0:
        m.count.l2_line_hits += 1
        cache_touch(&m.l2.cache, set, way)
        line[0] = set.lines[way]
        return way
    line[0] = 0
    way = cache_replace(&m.l2.cache, set, entry, &evicted_entry)
    t[0] = evict_line(m, slice, evicted_entry, set, way, t[0])
    return way


cdef inline unsigned int pair_partners(unsigned int sectors) noexcept nogil:
    """The other sectors of the aligned pairs that contain `sectors`."""
    return (sectors & 5) << 1 | (sectors & 10) >> 1


cdef inline int64_t l2_fetch(MemorySystem* m, Slice* slice, const LineLocation* at, unsigned int* line, int64_t* ready_ps,
                             unsigned int missing, int64_t t) noexcept nogil:
    """Fills missing sectors of a line, by the scheme; returns their arrival."""
    cdef int64_t* mshr = mshr_pop(&slice.mshrs)
    cdef int64_t done, begin = t
    cdef unsigned int filled = missing
    m.count.l2_read_misses += sector_count(missing)
    if unlikely(mshr[0] > t):
        count_wait(m, L2_MSHR, mshr[0] - t)
        begin = mshr[0]
    if unlikely(m.l2.fetch_pairs):
        m.l2.extra_fetch_mask = pair_partners(missing) & ~(missing | line[0])
    done = m.fill(m, slice, at, &filled, begin)
    mshr[0] = done
    filled &= ~line[0]
    m.count.fill_sectors += sector_count(filled)
    # The fill merges partially written sectors.
    line[0] = mark_pending(line[0] & ~(filled << PARTIAL), ready_ps, filled, t, done)
    histogram_add(m.count.memory_histogram, done - t)
    return done


cdef inline int64_t dirty_store_pass(MemorySystem* m, Slice* slice, unsigned int rewritten, int64_t t) noexcept nogil:
    """Delays a store for its sectors that are already dirty; returns the time at which they have passed the slice's port."""
    return port_transfer_counted(m, SLICE_PORT, &slice.port, t, sector_count(rewritten) * m.l2.dirty_store_cost) if rewritten else t


cdef inline int64_t request_arrival(MemorySystem* m, SmPorts* sm, Slice* slice, int n, int requests, int64_t t) noexcept nogil:
    """Sends a request for a line: `requests` sectors through the SM's port, `n` through the slice's. Returns its start there."""
    if unlikely(m.crossbar.send_requests != NULL):
        m.last_slice_ps = m.crossbar.send_requests(m, sm, slice, n, t) + m.crossbar.request_ps
        return m.last_slice_ps
    t = port_transfer_counted(m, REQUEST_PORT, &sm.requests, t, requests * m.crossbar.request_cost)
    m.last_slice_ps = t + m.crossbar.request_ps
    return port_transfer_counted(m, SLICE_PORT, &slice.port, m.last_slice_ps, n * m.l2.slice_cost)


cdef inline int64_t home_slice_load(MemorySystem* m, const LineLocation* at, unsigned int requested, bint for_atomic,
                                    int64_t t) noexcept nogil:
    """Loads sectors of a line for a load or atomic that passes the slice's port at `t`; returns the arrival of the last one."""
    cdef int n = sector_count(requested)
    cdef int64_t way, data, arrival = t
    cdef unsigned int line, present, missing, in_flight
    cdef Slice* slice = &m.l2.slices[at.slice]
    cdef CacheSet set = cache_set(&m.l2.cache, at.l2_set)
    cdef int64_t* ready_ps
    way = l2_way(m, slice, at.entry, &set, &line, &arrival)
    ready_ps = set.ready_ps + way
    prefetch(ready_ps)
    data = arrival
    present = line & requested
    missing = requested & ~present
    if present:
        in_flight = pending_at(line, ready_ps, arrival) & present
        if in_flight:
            data = ready_ps[0]
            m.count.l2_read_mshr_merges += sector_count(in_flight)
        m.count.l2_read_hits += sector_count(present & ~in_flight)
    if missing:
        data = max_i64(data, l2_fetch(m, slice, at, &line, ready_ps, missing, arrival))
    if for_atomic:
        m.count.sectors_made_dirty += sector_count(requested & ~(line >> DIRTY))
        line |= requested << DIRTY
        l2_class(m, &set, way)[0] = <uint8_t>at.size_class
        data = port_transfer(&slice.atomics, &m.horizon, data, n * m.l2.atomic_cost)
    set.lines[way] = <Line>line
    if for_atomic and unlikely(m.l2.dirtied != NULL):
        m.l2.dirtied(m, slice, &set, arrival)
    return data


cdef inline int64_t l2_load(MemorySystem* m, SmPorts* sm, const LineLocation* at, unsigned int requested, bint for_atomic,
                            int64_t t) noexcept nogil:
    """Loads sectors of a line for a load or atomic of an SM at `t`; returns the time at which the SM can use the last one."""
    cdef int n = sector_count(requested)
    cdef int64_t data, evicted_entry
    cdef Slice* slice = &m.l2.slices[at.slice]
    if unlikely(m.l2.partitioned_load != NULL):
        t = m.last_slice_ps = port_transfer_counted(m, REQUEST_PORT, &sm.requests, t, m.crossbar.request_cost) + m.crossbar.request_ps
        data = m.l2.partitioned_load(m, sm, at, requested, for_atomic, t)
    else:
        t = request_arrival(m, sm, slice, n, 1, t)
        if unlikely(m.on_access != NULL):
            t = m.on_access(m, at.entry, t)
        data = home_slice_load(m, at, requested, for_atomic, t)
    if unlikely(m.crossbar.send_replies != NULL):
        evicted_entry = m.crossbar.send_replies(m, sm, slice, n, data)
        count_wait(m, REPLY_PORT, max_i64(0, evicted_entry - (n - 1) * m.crossbar.sector_ps - data))
        return evicted_entry + m.crossbar.reply_ps
    data += m.crossbar.reply_ps
    data = port_transfer_counted(m, REPLY_PORT, &sm.replies, data, n * m.crossbar.reply_cost)
    return data + (n - 1) * m.crossbar.sector_ps


cdef inline int64_t l2_store(MemorySystem* m, SmPorts* sm, const LineLocation* at, unsigned int written, unsigned int fully_written,
                             int64_t t) noexcept nogil:
    """Stores sectors of a line; returns the arrival of the acknowledgement at the SM."""
    cdef int n = sector_count(written)
    cdef int64_t way, arrival, extra_ps = 0
    cdef unsigned int line, partial
    cdef Slice* slice = &m.l2.slices[at.slice]
    cdef CacheSet set = cache_set(&m.l2.cache, at.l2_set)
    if unlikely(m.l2.remote_store_delay != NULL):
        extra_ps = m.l2.remote_store_delay(m, sm, at, written)
        arrival = port_transfer_counted(m, REQUEST_PORT, &sm.requests, t, n * m.crossbar.request_cost) + m.crossbar.request_ps + (extra_ps >> 1)
        arrival = port_transfer_counted(m, SLICE_PORT, &slice.port, arrival, n * m.l2.slice_cost)
    else:
        arrival = request_arrival(m, sm, slice, n, n, t)
    if unlikely(m.on_access != NULL):
        arrival = m.on_access(m, at.entry, arrival)
    way = l2_way(m, slice, at.entry, &set, &line, &arrival)
    if unlikely(m.l2.dirty_store_cost != 0):
        arrival = dirty_store_pass(m, slice, written & (line >> DIRTY), arrival)
    m.count.l2_writes += n
    m.count.l2_write_hits += sector_count(written & (line | line >> DIRTY))
    m.count.sectors_made_dirty += sector_count(written & ~(line >> DIRTY))
    line |= fully_written | written << DIRTY
    partial = (line >> PARTIAL | written) & ~line & 15
    set.lines[way] = <Line>(line & ~(15 << PARTIAL) | partial << PARTIAL)
    l2_class(m, &set, way)[0] = <uint8_t>at.size_class
    if unlikely(m.l2.dirtied != NULL):
        arrival = m.l2.dirtied(m, slice, &set, arrival)
    if unlikely(m.crossbar.send_replies != NULL):
        arrival = m.crossbar.send_replies(m, sm, slice, n, arrival)
    return arrival + m.crossbar.reply_ps + (extra_ps - (extra_ps >> 1))


cdef object memory_init(Arena* arena, MemorySystem* m, const SectorCache* l1, dict n, allocations, entry_classes,
                        dict policies, bint sized)
cdef void count_waits_in(MemorySystem* m, int64_t* waits) noexcept
cdef int64_t invalidate_lines(MemorySystem* m, uint32_t first_entry, uint32_t entries) noexcept nogil
cdef int64_t l2_dirty_sectors(const MemorySystem* m) noexcept nogil
