"""From a chunk's records to the streams that its warps replay."""
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

from buddysim.replay.engine.arena cimport arena_block, arena_block_free
from buddysim.replay.engine.events cimport smaller
from buddysim.replay.engine.compiler_hints cimport unlikely
from buddysim.replay.engine.address_map cimport locate_line
from buddysim.replay.engine.address_map_simd cimport location_begin, locations_complete
from buddysim.replay.engine.memory cimport Region
from buddysim.replay.engine.allocations cimport region_of_line
from buddysim.trace.records cimport (
    FLAG_BYPASS_L1, FLAG_NO_RETURN, FLAG_TIMED, OP_ATOMIC, OP_LOAD, OP_STORE, ATOMIC_CONFLICTS_SHIFT, BANK_WORDS_SHIFT,
)


cdef int core_init(CoreTiming* core, dict n) except -1:
    """The timing of a core, from the machine's numbers (`parameters.engine_numbers`)."""
    core.cycle_ps, core.step_ps = n["cycle_ps"], n["step_ps"]
    core.issue_interval_ps, core.assumed_ps = n["issue_interval_ps"], n["assumed_ps"]
    core.barrier_ps = n["barrier_ps"]
    core.scale_num, core.scale_den = n["gap_scale_num"], n["gap_scale_den"]
    core.atomics_by_thread, core.unit_turns = n["atomics_by_thread"], n["unit_turns"]
    core.round_robin, core.blocking_atomics = n["round_robin"], n["blocking_atomics"]
    return 0


cdef int64_t scaled(const CoreTiming* core, int64_t amount) noexcept nogil:
    """What a run with scaled gaps makes of instructions or times between memory operations, to the nearest, halves up."""
    if core.scale_num == core.scale_den:
        return amount
    cdef int64_t whole = amount // core.scale_den, rest = amount % core.scale_den    # apart, so that no product overflows
    return whole * core.scale_num + (rest * core.scale_num + core.scale_den // 2) // core.scale_den


cdef int64_t chain_ps(const CoreTiming* core, bint timed, int64_t instructions, int64_t cycles, int64_t steps) noexcept nogil:
    """How long `instructions` of a warp take that follow each other, nothing missing."""
    cdef int64_t ps, least
    if timed:
        ps = cycles * core.cycle_ps + steps * core.step_ps
        least = instructions * core.issue_interval_ps
        ps = ps if ps > least else least
    else:
        ps = instructions * core.assumed_ps
    return scaled(core, ps)


cdef inline int repeats(const CoreTiming* core, const WarpOp* record) noexcept nogil:
    """Requests of an atomic besides one for each line: threads that meet at a word."""
    return record.flags >> ATOMIC_CONFLICTS_SHIFT if core.atomics_by_thread and record.kind == OP_ATOMIC else 0


cdef int64_t repeated_lines(const CoreTiming* core, const WarpOp* ops, int64_t n) noexcept nogil:
    """Of operations, all `repeats`."""
    cdef int64_t o, total = 0
    if core.atomics_by_thread:
        for o in range(n):
            total += repeats(core, &ops[o])
    return total


cdef inline uint64_t first_sector(uint64_t line) noexcept nogil:
    """A line's word with the first of its sectors alone."""
    return line & ~<uint64_t>255 | line & 15 & -(line & 15)


cdef uint32_t issue_slots(int64_t instructions) noexcept nogil:
    return <uint32_t>instructions if instructions < 0x7FFFFFFF else 0x7FFFFFFF


cdef StreamOp op_of(const CoreTiming* core, const WarpOp* record) noexcept nogil:
    """What a record says of an operation but for its lines."""
    cdef StreamOp op
    cdef bint timed = record.flags & FLAG_TIMED
    cdef int64_t gap = record.gap_instructions
    op.chain_ps = chain_ps(core, timed, gap + 1, record.critical_path_cycles, record.critical_path_hops)
    op.use_ps = NEVER_USED
    if record.use_distance and record.kind != OP_STORE and not record.flags & FLAG_NO_RETURN:
        op.use_ps = chain_ps(core, timed, record.use_distance, record.use_cycles, record.use_hops)
    if record.kind == OP_ATOMIC and core.blocking_atomics:
        op.use_ps = scaled(core, core.issue_interval_ps)
    op.slots = issue_slots(scaled(core, gap) + 1)
    op.unit_busy_slots = <uint16_t>smaller(scaled(core, record.unit_busy_slots), MANY_UNIT_BUSY_SLOTS)
    op.kind = OP_LOAD_PAST_L1 if record.flags & FLAG_BYPASS_L1 and record.kind == OP_LOAD else record.kind
    op.bank_words = record.flags >> BANK_WORDS_SHIFT if record.kind == OP_LOAD or record.kind == OP_STORE else 0
    op.n_lines = <uint8_t>(record.n_lines + repeats(core, record))
    return op


cdef StreamOp end_of(const CoreTiming* core, const WarpRecord* warp) noexcept nogil:
    """What a warp's record says of what follows its last operation."""
    cdef StreamOp op
    cdef int64_t unit_busy_slots = scaled(core, warp.tail_unit_busy_slots)
    op.chain_ps = chain_ps(
        core, warp.tail_critical_path_cycles != 0, warp.tail_gap_instructions,
        warp.tail_critical_path_cycles, warp.tail_critical_path_hops,
    )
    op.use_ps = NEVER_USED if unit_busy_slots < MANY_UNIT_BUSY_SLOTS else unit_busy_slots * core.cycle_ps
    op.slots = issue_slots(scaled(core, warp.tail_gap_instructions))
    op.unit_busy_slots = <uint16_t>smaller(unit_busy_slots, MANY_UNIT_BUSY_SLOTS)
    op.kind, op.bank_words, op.n_lines = OP_END, 0, 0
    return op


cdef enum:
    RECENT_OPS = 16
    ALIKE_BYTES = sizeof(WarpOp) - sizeof(uint32_t)     # of a record: all but `first_line`, with which it begins

cdef struct RecentOp:           # the next warp, or turn of a loop, has one like it
    WarpOp record
    StreamOp op


cdef inline StreamOp recent_op(RecentOp* recent, const CoreTiming* core, const WarpOp* record) noexcept nogil:
    """`op_of`, looked up where a record that says the same came by lately."""
    cdef uint32_t digest = record.gap_instructions + 3 * record.use_distance + 5 * record.critical_path_cycles + 7 * record.kind
    cdef RecentOp* one = &recent[digest % RECENT_OPS]
    if memcmp(&one.record.gap_instructions, &record.gap_instructions, ALIKE_BYTES) != 0:
        one.record = record[0]
        one.op = op_of(core, record)
    return one.op


cdef struct Window:             # the lines of one allocation, addresses << 8 as a line's word has them
    uint64_t first
    uint64_t length
    uint64_t to_entry           # what to add to make a line's word one with its entry number instead of its address
    int64_t region
    bint has_classes            # does the state have what this kernel's stores leave?


cdef Window window_of(const MemorySystem* m, uint64_t line, uint64_t launch_index) noexcept nogil:
    """The window of the live allocation that holds a line, for this launch; an empty window if there is none."""
    cdef const Region* region = region_of_line(m, line >> 8)
    if not region:
        return Window(0, 0, 0, -1, False)
    return Window(region.first_line << 8, <uint64_t>region.entries << 8, (region.first_entry - region.first_line) << 8,
                  region - m.regions, region.written_first <= launch_index <= region.written_last)


cdef inline uint64_t size_class(const MemorySystem* m, uint64_t word) noexcept nogil:
    """Where a line's word has it: the class that a store gives the line's entry."""
    return <uint64_t>(m.state[<uint32_t>(word >> 8)] >> 4 & 7) << 40


cdef int stream_reserve(StreamMemory* memory, int64_t warps, int64_t ops, int64_t lines) except -1:
    """Makes room for the streams of that many warps, operations and lines. Raises MemoryError."""
    cdef size_t few = <size_t>smaller(lines, ops * (MANY_LINES - 1))
    cdef size_t ops_bytes = <size_t>(ops + warps) * sizeof(StreamOp) + <size_t>lines * sizeof(uint64_t) + few * sizeof(LineLocation)
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


cdef struct Unlocated:          # lines whose locations are still to be found, with others
    LineLocation* lines[8]
    int n


cdef inline void locate_later(Unlocated* unlocated, const MemorySystem* m, const SectorCache* l1,
                              LineLocation* line) noexcept nogil:
    """Completes a line's location, now or with others: at the latest in `locate_rest`."""
    if not m.eight_at_a_time:
        locate_line(m, l1, line)
        return
    unlocated.lines[unlocated.n] = line
    unlocated.n += 1
    if unlocated.n == 8:
        locations_complete(&m.rules, unlocated.lines)
        unlocated.n = 0


cdef void locate_rest(Unlocated* unlocated, const MemorySystem* m) noexcept nogil:
    """Completes the locations of the lines that are left."""
    cdef int i
    if unlocated.n:
        for i in range(unlocated.n, 8):
            unlocated.lines[i] = unlocated.lines[0]
        locations_complete(&m.rules, unlocated.lines)


cdef FillStop stream_fill(StreamMemory* memory, const CoreTiming* core, const MemorySystem* m, const SectorCache* l1,
                          const WarpRecord* warps, int64_t n_warps, const WarpOp* ops, const uint64_t* lines, uint64_t launch_index,
                          int64_t* number) noexcept nogil:
    """Writes the streams of a chunk's warps, of the kernel of a launch index.

    Where it can't, `number` becomes the index of the line that is outside, or the region that lacks size classes.
    """
    cdef StreamOp* at = <StreamOp*>memory.ops
    cdef const WarpRecord* warp
    cdef const WarpOp* op
    cdef const uint64_t* line
    cdef char* written
    cdef Unlocated unlocated
    cdef Window window = Window(0, 0, 0, -1, False)
    cdef uint64_t word
    cdef int64_t w, o
    cdef int i, n_lines
    cdef bint writes
    cdef RecentOp[16] recent
    memset(recent, 0, sizeof(recent))
    for i in range(RECENT_OPS):
        recent[i].op = op_of(core, &recent[i].record)
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
                    window = window_of(m, word, launch_index)
                    if not window.length:
                        number[0] = line + i - lines
                        return FILL_OUTSIDE
                word += window.to_entry
                if writes:
                    if unlikely(not window.has_classes):
                        number[0] = window.region
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
        at[0] = end_of(core, warp)
        at += 1
    locate_rest(&unlocated, m)
    return FILL_DONE


cdef void stream_free(StreamMemory* memory) noexcept:
    arena_block_free(memory.ops)
    arena_block_free(memory.starts)
