"""A warp's operations as the event loop replays them: one after the other in memory, times in picoseconds, lines located.

A stream is a `StreamOp`, its lines, the next `StreamOp` and so on; `OP_END` closes it. So a warp's next operation is one or two
cache lines of the CPU, and what does not change from turn to turn is computed once, when the chunk arrives. That includes the
locations of lines as long as they are few: those of many would take more memory than finding them takes time.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from buddysim.replay.engine.cache cimport SectorCache
from buddysim.replay.engine.compiler_hints cimport unlikely
from buddysim.replay.engine.memory cimport MemorySystem
from buddysim.replay.engine.address_map_simd cimport LineLocation
from buddysim.trace.records cimport WarpOp, WarpRecord

cdef enum:
    # These follow the kinds of `OpKind`.
    OP_END = 4                  # the warp ends
    OP_LOAD_PAST_L1 = 5         # a load that the L2 must serve
    NEVER_USED = -1
    MANY_LINES = 6              # of an operation: from here on it has words, not locations
    MANY_UNIT_BUSY_SLOTS = 65535     # that many or more, of an operation taken for that many; of an end `use_ps` has the time

cdef extern from "stream_op.h" nogil:
    ctypedef struct StreamOp:
        int64_t chain_ps            # from the last operation's issue to this one's, nothing missing
        int64_t use_ps              # from its issue to the first use of what it loads, or NEVER_USED; see MANY_UNIT_BUSY_SLOTS
        uint32_t slots              # issue slots it takes, with the instructions before it
        uint16_t unit_busy_slots    # issue slots besides that the busiest execution unit takes for those instructions
        uint8_t kind
        uint8_t bank_words          # of a load or store (`word_turns` in sm.pxd)
        uint8_t n_lines             # that many `LineLocation` follow, or, from MANY_LINES on, words: entry << 8 | masks

cdef struct CoreTiming:
    int64_t cycle_ps
    int64_t step_ps
    int64_t issue_interval_ps
    int64_t assumed_ps          # an instruction of an untimed trace
    int64_t barrier_ps
    int64_t scale_num           # gaps and chains are scaled by num / den
    int64_t scale_den
    int round_robin
    int unit_turns              # who waits for a unit waits for its own instructions there, too
    int blocking_atomics        # an atomic is used by the next instruction
    int atomics_by_thread       # threads of an atomic that meet at a word send a request each

cdef enum FillStop:             # why `stream_fill` returns
    FILL_DONE = 0
    FILL_OUTSIDE = 1            # a line is in no live allocation
    FILL_SIZES = 2              # a region's size classes after a store are another kernel's

cdef struct StreamMemory:       # of one chunk; grows, and is used again for the next one
    char* ops                   # the warps' streams
    size_t ops_bytes
    uint64_t* starts            # [warps]: offsets in `ops`
    size_t starts_bytes


cdef inline int64_t unit_ps(const CoreTiming* core, const StreamOp* op) noexcept nogil:
    """How long the busiest execution unit is kept besides the issue slots."""
    if unlikely(op.unit_busy_slots == MANY_UNIT_BUSY_SLOTS) and op.kind == OP_END:
        return op.use_ps
    return op.unit_busy_slots * core.cycle_ps


cdef inline const LineLocation* stream_locations(const StreamOp* op) noexcept nogil:
    """Where an operation's lines lie, if they are few."""
    return <const LineLocation*>(op + 1)


cdef inline const uint64_t* stream_words(const StreamOp* op) noexcept nogil:
    """An operation's lines, if they are many."""
    return <const uint64_t*>(op + 1)


cdef inline size_t stream_bytes(const StreamOp* op) noexcept nogil:
    """What an operation takes of its stream."""
    return sizeof(StreamOp) + op.n_lines * (sizeof(uint64_t) if op.n_lines >= MANY_LINES else sizeof(LineLocation))


cdef inline const StreamOp* stream_next(const StreamOp* op) noexcept nogil:
    """The operation that follows."""
    return <const StreamOp*>(<const char*>op + stream_bytes(op))


cdef int core_init(CoreTiming* core, dict n) except -1
cdef int64_t repeated_lines(const CoreTiming* core, const WarpOp* ops, int64_t n) noexcept nogil
cdef int stream_reserve(StreamMemory* memory, int64_t warps, int64_t ops, int64_t lines) except -1
cdef FillStop stream_fill(StreamMemory* memory, const CoreTiming* core, const MemorySystem* m, const SectorCache* l1,
                          const WarpRecord* warps, int64_t n_warps, const WarpOp* ops, const uint64_t* lines, uint64_t launch_index,
                          int64_t* number) noexcept nogil
cdef void stream_free(StreamMemory* memory) noexcept
