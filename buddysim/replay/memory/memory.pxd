"""The memory system below the L1s: crossbar, L2 slices, device memory and link.

A request is simulated to its end when it issues. It reserves its use of ports and channels for the times at which it arrives
there (`port`, `dram`).
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from buddysim.replay.dram.dram cimport Dram
from buddysim.replay.link.link cimport Link
from buddysim.replay.primitives.address_map_simd cimport LineLocation, LocationRules
from buddysim.replay.primitives.arena cimport Arena
from buddysim.replay.primitives.cache cimport CacheSet, Line, SectorCache
from buddysim.replay.primitives.division cimport Divisor
from buddysim.replay.primitives.horizon cimport Horizon
from buddysim.replay.primitives.kinds cimport HISTOGRAM_BINS
from buddysim.replay.primitives.mshrs cimport Mshrs
from buddysim.replay.primitives.port cimport Port
from buddysim.replay.primitives.reservation_table cimport ReservationTable, SlotGrid
from buddysim.replay.primitives.waits cimport Waits

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
    Mshrs writebacks                        # slots of the write-back buffer; unused without `buffers_writebacks`
    int64_t[1] reserved_end

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
    int64_t request_ps                  # L1 miss to arrival at the slice, a sector's pass of the request port included
    int64_t reply_ps                    # slice to use in the SM, a sector's pass of both ports included
    int64_t acknowledgement_ps          # slice to the SM, a stored sector's pass of the slice's port included
    int64_t store_sector_ps             # between two sectors of a store, where their replies don't follow each other
    int64_t sector_ps                   # between two sectors of a reply
    int64_t reply_cost                  # one sector through an SM's reply port
    int64_t request_cost                # one sector of a store, or a load's request, through an SM's request port
    SlotGrid slice_grid                 # with input queues: slots of a slice, in each direction
    SlotGrid reply_grid                 # with input queues: slots of replies to an SM
    int64_t queue_sector_ps             # with input queues: one sector out of an SM's queue
    int64_t request_lag_ps              # with input queues: between two requests of a line, beyond `sector_ps`
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
    bint buffers_writebacks             # a line's way is free once the slice's write-back buffer has a slot for it
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
    Waits waits


cdef object memory_init(Arena* arena, MemorySystem* m, const SectorCache* l1, dict n, allocations, entry_classes,
                        dict policies, bint sized)
cdef void count_waits_in(MemorySystem* m, int64_t* bins) noexcept
