"""Converts the records of a chunk to operation streams."""
from libc.string cimport memcmp, memset

from buddysim.replay.memory.address_map cimport locate_line
from buddysim.replay.memory.allocations cimport allocation_of_line
from buddysim.replay.memory.memory cimport AllocationState
from buddysim.replay.primitives.address_map_simd cimport location_begin, complete_locations_simd
from buddysim.replay.primitives.arena cimport arena_block, arena_block_free
from buddysim.replay.primitives.extremes cimport min_i64
from buddysim.trace.records cimport (
    FLAG_BYPASS_L1, FLAG_NO_RETURN, FLAG_TIMED, OP_ATOMIC, OP_LOAD, OP_STORE, ATOMIC_CONFLICTS_SHIFT, BANK_WORDS_SHIFT,
)


cdef int64_t scaled(const CoreTiming* core, int64_t amount) noexcept nogil:
    """Instructions or times of a compute gap, scaled; rounded to the nearest, halves up."""
    if core.scale_num == core.scale_den:
        return amount
    cdef int64_t quotient = amount // core.scale_den, remainder = amount % core.scale_den    # so that no product overflows
    return quotient * core.scale_num + (remainder * core.scale_num + core.scale_den // 2) // core.scale_den


cdef int64_t gap_latency_ps(const CoreTiming* core, bint timed, int64_t instructions, int64_t cycles, int64_t hops) noexcept nogil:
    """Latency of consecutive instructions of a warp, without waiting."""
    cdef int64_t ps, min_ps
    if timed:
        ps = cycles * core.cycle_ps + hops * core.pipeline_ps
        min_ps = instructions * core.issue_interval_ps
        ps = ps if ps > min_ps else min_ps
    else:
        ps = instructions * core.assumed_instruction_ps
    return scaled(core, ps)


cdef inline int atomic_conflicts(const CoreTiming* core, const WarpOp* record) noexcept nogil:
    """Requests of an atomic beyond one per line, because of lanes with one address."""
    return record.flags >> ATOMIC_CONFLICTS_SHIFT if core.split_conflicting_atomics and record.kind == OP_ATOMIC else 0


cdef int64_t conflict_lines(const CoreTiming* core, const WarpOp* ops, int64_t n) noexcept nogil:
    """Sum of `atomic_conflicts` over operations."""
    cdef int64_t o, total = 0
    if core.split_conflicting_atomics:
        for o in range(n):
            total += atomic_conflicts(core, &ops[o])
    return total


cdef inline uint64_t first_sector(uint64_t line) noexcept nogil:
    """The word of a line with only its first sector."""
    return line & ~<uint64_t>255 | line & 15 & -(line & 15)


cdef uint32_t clamp_issue_slots(int64_t instructions) noexcept nogil:
    return <uint32_t>instructions if instructions < 0x7FFFFFFF else 0x7FFFFFFF


cdef StreamOp stream_op(const CoreTiming* core, const WarpOp* record) noexcept nogil:
    """Converts a record to an operation, without its lines."""
    cdef StreamOp op
    cdef bint timed = record.flags & FLAG_TIMED
    cdef int64_t gap = record.gap_instructions
    op.gap_latency_ps = gap_latency_ps(core, timed, gap + 1, record.critical_path_cycles, record.critical_path_hops)
    op.use_ps = NEVER_USED
    if record.use_distance and record.kind != OP_STORE and not record.flags & FLAG_NO_RETURN:
        op.use_ps = gap_latency_ps(core, timed, record.use_distance, record.use_cycles, record.use_hops)
    if record.kind == OP_ATOMIC and core.blocking_atomics:
        op.use_ps = scaled(core, core.issue_interval_ps)
    op.issue_slots = clamp_issue_slots(scaled(core, gap) + 1)
    op.unit_busy_slots = <uint16_t>min_i64(scaled(core, record.unit_busy_slots), SATURATED_UNIT_BUSY_SLOTS)
    op.kind = OP_LOAD_PAST_L1 if record.flags & FLAG_BYPASS_L1 and record.kind == OP_LOAD else record.kind
    op.bank_words = record.flags >> BANK_WORDS_SHIFT if record.kind == OP_LOAD or record.kind == OP_STORE else 0
    op.n_lines = <uint8_t>(record.n_lines + atomic_conflicts(core, record))
    return op


cdef StreamOp stream_end(const CoreTiming* core, const WarpRecord* warp) noexcept nogil:
    """Converts the tail of a warp's record, after its last operation, to OP_END."""
    cdef StreamOp op
    cdef int64_t unit_busy_slots = scaled(core, warp.tail_unit_busy_slots)
    op.gap_latency_ps = gap_latency_ps(
        core, warp.tail_critical_path_cycles != 0, warp.tail_gap_instructions,
        warp.tail_critical_path_cycles, warp.tail_critical_path_hops,
    )
    op.use_ps = NEVER_USED if unit_busy_slots < SATURATED_UNIT_BUSY_SLOTS else unit_busy_slots * core.cycle_ps
    op.issue_slots = clamp_issue_slots(scaled(core, warp.tail_gap_instructions))
    op.unit_busy_slots = <uint16_t>min_i64(unit_busy_slots, SATURATED_UNIT_BUSY_SLOTS)
    op.kind, op.bank_words, op.n_lines = OP_END, 0, 0
    return op


cdef enum:
    RECENT_OPS = 16
    COMPARED_BYTES = sizeof(WarpOp) - sizeof(uint32_t)  # of a record: all fields except `first_line`, the first one

cdef struct RecentOp:           # the next warp, or iteration of a loop, often has an equal record
    WarpOp record
    StreamOp op


cdef inline StreamOp recent_op(RecentOp* recent, const CoreTiming* core, const WarpOp* record) noexcept nogil:
    """`stream_op`, from a recent equal record if there is one."""
    cdef uint32_t digest = record.gap_instructions + 3 * record.use_distance + 5 * record.critical_path_cycles + 7 * record.kind
    cdef RecentOp* slot = &recent[digest % RECENT_OPS]
    if memcmp(&slot.record.gap_instructions, &record.gap_instructions, COMPARED_BYTES) != 0:
        slot.record = record[0]
        slot.op = stream_op(core, record)
    return slot.op


cdef struct AddressWindow:             # lines of one allocation; addresses << 8, as in a line's word
    uint64_t first
    uint64_t length
    uint64_t to_entry  # added to a word, replaces the line's address by its entry number
    int64_t allocation
    bint has_classes   # `entry_classes` has the classes after the stores of this launch


cdef AddressWindow address_window(const MemorySystem* m, uint64_t line, uint64_t launch_index) noexcept nogil:
    """Window of the live allocation that contains a line, for a launch; of length 0 if there is none."""
    cdef const AllocationState* allocation = allocation_of_line(m, line >> 8)
    if not allocation:
        return AddressWindow(0, 0, 0, -1, False)
    return AddressWindow(allocation.first_line << 8, <uint64_t>allocation.entries << 8,
                         (allocation.first_entry - allocation.first_line) << 8,
                         allocation - m.allocations,
                         allocation.first_writer_launch <= launch_index <= allocation.last_writer_launch)


cdef inline uint64_t size_class(const MemorySystem* m, uint64_t word) noexcept nogil:
    """Size class of a line's entry after a store, at its position in a line's word."""
    return <uint64_t>(m.entry_classes[<uint32_t>(word >> 8)] >> 4 & 7) << 40


cdef int stream_reserve(StreamMemory* memory, int64_t warps, int64_t ops, int64_t lines) except -1:
    """Reserves memory for the streams of that many warps, operations and lines. Raises MemoryError."""
    cdef size_t few_lines = <size_t>min_i64(lines, ops * (MANY_LINES - 1))
    cdef size_t lines_bytes = <size_t>lines * sizeof(uint64_t) + few_lines * sizeof(LineLocation)
    cdef size_t ops_bytes = <size_t>(ops + warps) * sizeof(StreamOp) + lines_bytes
    cdef size_t starts_bytes = <size_t>warps * sizeof(uint64_t)
    if memory.ops_bytes < ops_bytes:
        arena_block_free(memory.ops)
        memory.ops = <char*>arena_block(ops_bytes)
        memory.ops_bytes = ops_bytes if memory.ops else 0
    if memory.starts_bytes < starts_bytes:
        arena_block_free(memory.starts)
        memory.starts = <uint64_t*>arena_block(starts_bytes)
        memory.starts_bytes = starts_bytes if memory.starts else 0
    if memory.ops_bytes < ops_bytes or memory.starts_bytes < starts_bytes:
        raise MemoryError(f"a chunk of {ops} operations does not fit in memory")
    return 0


cdef struct Unlocated:          # lines to be located together
    LineLocation* lines[8]
    int n


cdef inline void locate_later(Unlocated* unlocated, const MemorySystem* m, const SectorCache* l1,
                              LineLocation* line) noexcept nogil:
    """Completes a line's location, now or together with others, at the latest in `locate_remaining`."""
    if not m.eight_at_a_time:
        locate_line(m, l1, line)
        return
    unlocated.lines[unlocated.n] = line
    unlocated.n += 1
    if unlocated.n == 8:
        complete_locations_simd(&m.rules, unlocated.lines)
        unlocated.n = 0


cdef void locate_remaining(Unlocated* unlocated, const MemorySystem* m) noexcept nogil:
    """Completes the remaining locations."""
    cdef int i
    if unlocated.n:
        for i in range(unlocated.n, 8):
            unlocated.lines[i] = unlocated.lines[0]
        complete_locations_simd(&m.rules, unlocated.lines)


cdef FillStop stream_fill(StreamMemory* memory, const CoreTiming* core, const MemorySystem* m, const SectorCache* l1,
                          const WarpRecord* warps, int64_t n_warps, const WarpOp* ops, const uint64_t* lines,
                          uint64_t launch_index, int64_t* number) noexcept nogil:
    """Writes the streams of a chunk's warps, of one launch.

    If it fails, `number` becomes the index of the line in no live allocation, or the allocation whose size classes differ.
    """
    cdef StreamOp* at = <StreamOp*>memory.ops
    cdef const WarpRecord* warp
    cdef const WarpOp* op
    cdef const uint64_t* line
    cdef char* written
    cdef Unlocated unlocated
    cdef AddressWindow window = AddressWindow(0, 0, 0, -1, False)
    cdef uint64_t word
    cdef int64_t w, o
    cdef int i, n_lines
    cdef bint writes
    cdef RecentOp[16] recent
    memset(recent, 0, sizeof(recent))
    for i in range(RECENT_OPS):
        recent[i].op = stream_op(core, &recent[i].record)
    unlocated.n = 0
    for w in range(n_warps):
        warp = &warps[w]
        memory.starts[w] = <char*>at - memory.ops
        for o in range(warp.first_op, <int64_t>warp.first_op + warp.n_ops):
            op = &ops[o]
            at[0] = recent_op(recent, core, op)
            written = <char*>(at + 1)
            line = lines + op.first_line
            writes = m.sized and (op.kind == OP_STORE or op.kind == OP_ATOMIC)
            n_lines = at.n_lines
            for i in range(n_lines):
                word = line[i] if i < op.n_lines else first_sector(line[i % op.n_lines])
                if unlikely(word - window.first >= window.length):
                    window = address_window(m, word, launch_index)
                    if not window.length:
                        number[0] = line + i - lines
                        return FILL_OUTSIDE
                word += window.to_entry
                if writes:
                    if unlikely(not window.has_classes):
                        number[0] = window.allocation
                        return FILL_SIZES
                    word |= size_class(m, word)
                if n_lines < MANY_LINES:
                    location_begin(<LineLocation*>written, word)
                    locate_later(&unlocated, m, l1, <LineLocation*>written)
                    written += sizeof(LineLocation)
                else:
                    (<uint64_t*>written)[0] = word
                    written += sizeof(uint64_t)
            at = <StreamOp*>written
        at[0] = stream_end(core, warp)
        at += 1
    locate_remaining(&unlocated, m)
    return FILL_DONE


cdef void stream_free(StreamMemory* memory) noexcept:
    arena_block_free(memory.ops)
    arena_block_free(memory.starts)
