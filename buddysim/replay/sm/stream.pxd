"""Operation streams: the operations of a warp as the event loop replays them, with times in ps and located lines.

A stream is a `StreamOp`, its lines, the next `StreamOp`, and so on; `OP_END` closes it. So a warp's next operation lies in one
or two cache lines of the CPU. All values that do not depend on the run's state are computed once, when the chunk arrives. That
includes the locations of lines, if they are few: for many lines, the memory costs more time than locating them again.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from buddysim.replay.memory.memory cimport MemorySystem
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.cache cimport SectorCache
from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.trace.records cimport WarpOp, WarpRecord

cdef enum:
    # Continue the values of `OpKind`.
    OP_END = 4                         # the warp exits
    OP_LOAD_PAST_L1 = 5                # a load that bypasses the L1
    NEVER_USED = -1
    MANY_LINES = 6                     # operations of this many lines store words instead of locations
    SATURATED_UNIT_BUSY_SLOTS = 65535  # largest `unit_busy_slots`; OP_END has the exact time in `use_ps`

cdef extern from *:
    """
    typedef struct {
        int64_t gap_latency_ps, use_ps;
        uint32_t issue_slots;
        uint16_t unit_busy_slots;
        uint8_t kind : 3, bank_words : 5;
        uint8_t n_lines;
    } StreamOp;

    _Static_assert(sizeof(StreamOp) == 24, "an operation and the location of one line fill a cache line of the CPU");
    """
    ctypedef struct StreamOp:
        int64_t gap_latency_ps      # issue of the operation before it to its own, without waiting
        int64_t use_ps              # its issue to the first use of its result, or NEVER_USED; see SATURATED_UNIT_BUSY_SLOTS
        uint32_t issue_slots        # of the operation and the compute gap before it
        uint16_t unit_busy_slots    # issue slots that the busiest execution unit adds for the compute gap
        uint8_t kind                # OpKind, OP_END or OP_LOAD_PAST_L1
        uint8_t bank_words          # of loads and stores: trace field of data-bank cycles, see `data_bank_cycles`
        uint8_t n_lines             # followed by a LineLocation per line; from MANY_LINES on a word: entry << 8 | masks

# Timing of an SM.
# Fields have the names of `parameters.engine_numbers`, which fill them.
cdef struct CoreTiming:
    int64_t cycle_ps
    int64_t pipeline_ps             # per hop of a critical path
    int64_t issue_interval_ps       # least time between two instructions of a warp
    int64_t assumed_instruction_ps  # of an instruction, if the trace has no dependence information
    int64_t barrier_ps              # last arrival at a barrier to the next instruction of its warps
    int64_t scale_num           # compute gaps are scaled by scale_num / scale_den
    int64_t scale_den
    int stall_on_busy_unit          # a warp that waits for a busy unit also waits for its own instructions there
    int blocking_atomics            # the next instruction uses an atomic's result
    int split_conflicting_atomics   # lanes of an atomic with one address send one request each

# Why `stream_fill` returns.
cdef enum FillStop:
    FILL_DONE = 0
    FILL_OUTSIDE = 1  # a line lies in no live allocation
    FILL_SIZES = 2    # an allocation's classes after stores are those of other launches

# Memory of one chunk. It grows, and the next chunk uses it again.
cdef struct StreamMemory:
    char* ops         # operation streams of the warps
    size_t ops_bytes
    uint64_t* starts  # [warps]: offset of each stream in `ops`
    size_t starts_bytes


cdef inline int64_t unit_ps(const CoreTiming* core, const StreamOp* op) noexcept nogil:
    """Time that the busiest execution unit is occupied beyond the issue slots."""
    if unlikely(op.unit_busy_slots == SATURATED_UNIT_BUSY_SLOTS) and op.kind == OP_END:
        return op.use_ps
    return op.unit_busy_slots * core.cycle_ps


cdef inline const LineLocation* stream_locations(const StreamOp* op) noexcept nogil:
    """Locations of an operation's lines, if they are few."""
    return <const LineLocation*>(op + 1)


cdef inline const uint64_t* stream_words(const StreamOp* op) noexcept nogil:
    """Words of an operation's lines, if they are many."""
    return <const uint64_t*>(op + 1)


cdef inline size_t stream_bytes(const StreamOp* op) noexcept nogil:
    """Size of an operation in its stream."""
    return sizeof(StreamOp) + op.n_lines * (sizeof(uint64_t) if op.n_lines >= MANY_LINES else sizeof(LineLocation))


cdef inline const StreamOp* stream_next(const StreamOp* op) noexcept nogil:
    """The next operation."""
    return <const StreamOp*>(<const char*>op + stream_bytes(op))


cdef int64_t conflict_lines(const CoreTiming* core, const WarpOp* ops, int64_t n) noexcept nogil
cdef int stream_reserve(StreamMemory* memory, int64_t warps, int64_t ops, int64_t lines) except -1
cdef FillStop stream_fill(StreamMemory* memory, const CoreTiming* core, const MemorySystem* m, const SectorCache* l1,
                          const WarpRecord* warps, int64_t n_warps, const WarpOp* ops, const uint64_t* lines,
                          uint64_t launch_index, int64_t* number) noexcept nogil
cdef void stream_free(StreamMemory* memory) noexcept
