"""Encoding and decoding of a chunk's columns; `codec.pxd` describes them. Reference model: `ref_codec.py`."""

from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memset

import numpy as np

from buddysim.trace.records cimport (
    FLAG_BYPASS_L1, FLAG_NO_RETURN, FLAG_TIMED, OP_BARRIER, OP_LOAD, BlockRecord, WarpOp, WarpRecord,
)
from buddysim.trace.records import BLOCK_DTYPE, LINE_DTYPE, OP_DTYPE, WARP_DTYPE

cdef extern from *:
    bint unlikely(bint condition) noexcept nogil        # Cython's own macro


cdef enum Fault:
    FINE = 0
    BLOCK_WARPS
    BLOCK_FIRST_WARP
    BLOCK_NUMBER
    WARP_OPS
    WARP_FIRST_OP
    WARP_NUMBER
    WARP_SHAPE
    OP_SHAPE
    OP_LINES
    OP_FIRST_LINE
    OP_COUNT
    OP_KIND
    OP_FLAGS
    LINE_MASK
    LINE_WHOLE
    LINE_ADDRESS
    WIDE_COUNT
    OUT_OF_MEMORY

FAULTS = {
    BLOCK_WARPS: ("block", "the blocks' warp counts don't add up to the chunk's warps"),
    BLOCK_FIRST_WARP: ("block", "its first warp isn't the one after the block before"),
    BLOCK_NUMBER: ("block", "its number lies outside the kernel's grid"),
    WARP_OPS: ("warp", "the warps' op counts don't add up to the chunk's ops"),
    WARP_FIRST_OP: ("warp", "its first op isn't the one after the warp before"),
    WARP_NUMBER: ("warp", "its number lies outside the kernel's thread block"),
    WARP_SHAPE: ("warp", "its shape isn't in the table"),
    OP_SHAPE: ("op", "its shape isn't in the table"),
    OP_LINES: ("op", "the ops' line counts don't add up to the chunk's lines"),
    OP_FIRST_LINE: ("op", "its first line isn't the one after the op before"),
    OP_COUNT: ("op", "a barrier has no line, any other op has 1 to 64"),
    OP_KIND: ("op", "its kind isn't 0 (load), 1 (store), 2 (atomic) or 3 (barrier)"),
    OP_FLAGS: ("op", "it has unknown flags"),
    LINE_MASK: ("line", "its sector mask is 0, or sectors are written whole that aren't in it"),
    LINE_WHOLE: ("line", "sectors are written whole by a load"),
    LINE_ADDRESS: ("line", "its address is beyond 2^63"),
    WIDE_COUNT: ("line", "the wide deltas don't match the escapes"),
}


class CodecError(ValueError):
    """Records or columns that contradict themselves."""


cdef object fault(int code, size_t position):
    if code == OUT_OF_MEMORY:
        return MemoryError("no memory for a chunk")
    unit, problem = FAULTS[code]
    return CodecError(f"{unit} {position}: {problem}")


cdef inline int check_op(const WarpOp* op) noexcept nogil:
    if op.kind > OP_BARRIER:
        return OP_KIND
    if op.n_lines > MAX_LINES or (op.n_lines == 0) != (op.kind == OP_BARRIER):
        return OP_COUNT
    if op.kind == OP_BARRIER and op.flags & ~(FLAG_BYPASS_L1 | FLAG_TIMED | FLAG_NO_RETURN):
        return OP_FLAGS
    return FINE


cdef uint8_t[2][256] MASK_FAULTS        # [is it a load][masks of a line]: LINE_MASK, LINE_WHOLE or FINE
for masks in range(256):
    MASK_FAULTS[0][masks] = LINE_MASK if masks & 15 == 0 or masks >> 4 & ~masks else FINE
    MASK_FAULTS[1][masks] = MASK_FAULTS[0][masks] or (LINE_WHOLE if masks >> 4 else FINE)


cdef int check(
    const BlockRecord* blocks, size_t n_blocks, const WarpRecord* warps, size_t n_warps,
    const WarpOp* ops, size_t n_ops, const uint64_t* lines, size_t n_lines,
    uint64_t grid_blocks, uint64_t block_warps, size_t* position,
) noexcept nogil:
    """First contradiction in a chunk's records."""
    cdef size_t i, j, at = 0
    cdef int code
    for i in range(n_blocks):
        position[0] = i
        if blocks[i].first_warp != at:
            return BLOCK_FIRST_WARP
        if blocks[i].block >= grid_blocks:
            return BLOCK_NUMBER
        at += blocks[i].n_warps
        if at > n_warps:
            return BLOCK_WARPS
    if at != n_warps:
        return BLOCK_WARPS
    at = 0
    for i in range(n_warps):
        position[0] = i
        if warps[i].first_op != at:
            return WARP_FIRST_OP
        if warps[i].warp >= block_warps:
            return WARP_NUMBER
        at += warps[i].n_ops
        if at > n_ops:
            return WARP_OPS
    if at != n_ops:
        return WARP_OPS
    at = 0
    for i in range(n_ops):
        position[0] = i
        code = check_op(&ops[i])
        if code != FINE:
            return code
        if ops[i].first_line != at:
            return OP_FIRST_LINE
        if at + ops[i].n_lines > n_lines:
            return OP_LINES
        for j in range(at, at + ops[i].n_lines):
            position[0] = j
            code = MASK_FAULTS[ops[i].kind == OP_LOAD][<uint8_t>lines[j]]
            if code != FINE:
                return code
        at += ops[i].n_lines
    if at != n_lines:
        return OP_LINES
    return FINE


def check_records(
    const BlockRecord[::1] blocks, const WarpRecord[::1] warps, const WarpOp[::1] ops, const uint64_t[::1] lines,
    uint64_t grid_blocks=1 << 32, uint64_t block_warps=1 << 32,
):
    """Raise CodecError at the first contradiction in a chunk's records."""
    cdef size_t position = 0
    cdef int code
    with nogil:
        code = check(
            &blocks[0] if blocks.shape[0] else NULL, blocks.shape[0], &warps[0] if warps.shape[0] else NULL,
            warps.shape[0], &ops[0] if ops.shape[0] else NULL, ops.shape[0], &lines[0] if lines.shape[0] else NULL,
            lines.shape[0], grid_blocks, block_warps, &position,
        )
    if code != FINE:
        raise fault(code, position)


def count_instructions(const WarpRecord[::1] warps, const WarpOp[::1] ops):
    """Warp instructions (operations, compute gaps, tails) and memory instructions (operations without barriers)."""
    cdef uint64_t instructions = <uint64_t>ops.shape[0], memory = 0
    cdef Py_ssize_t i
    with nogil:
        for i in range(ops.shape[0]):
            instructions += ops[i].gap_instructions
            memory += ops[i].kind != OP_BARRIER
        for i in range(warps.shape[0]):
            instructions += warps[i].tail_gap_instructions
    return instructions, memory


# -- encoding ---------------------------------------------------------------------------------------------------------

cdef struct ShapeHashTable:
    # Open-addressed hash table of 1 + the number of a shape; 0 = free.
    uint32_t* slots
    size_t mask


cdef bint open_table(ShapeHashTable* table, size_t n) noexcept nogil:
    cdef size_t slots = 64
    while slots < 2 * n:
        slots *= 2
    table.slots = <uint32_t*>calloc(slots, sizeof(uint32_t))
    table.mask = slots - 1
    return table.slots != NULL


cdef inline uint64_t mix(const uint8_t* key, size_t n) noexcept nogil:
    """A hash of `n` bytes, a multiple of 4."""
    cdef uint64_t h = 0
    cdef size_t i
    for i in range(n // 4):
        h = (h ^ load_u32(key, i)) * <uint64_t>0x9E3779B97F4A7C15u
        h ^= h >> 29
    return h


cdef inline size_t find_shape(
    ShapeHashTable* table, uint8_t* shapes, size_t* n_shapes, const uint8_t* key, size_t key_bytes, size_t stride
) noexcept nogil:
    """Number of the shape `key`; a new one is appended to `shapes`."""
    cdef size_t slot = <size_t>mix(key, key_bytes) & table.mask
    cdef size_t shape
    while table.slots[slot]:
        shape = table.slots[slot] - 1
        if memcmp(shapes + shape * stride, key, key_bytes) == 0:
            return shape
        slot = (slot + 1) & table.mask
    shape = n_shapes[0]
    memcpy(shapes + shape * stride, key, key_bytes)
    n_shapes[0] = shape + 1
    table.slots[slot] = <uint32_t>(shape + 1)
    return shape


cdef struct WarpShape:
    uint32_t warp
    uint32_t n_ops
    uint32_t tail_gap_instructions
    uint32_t tail_critical_path_cycles
    uint32_t tail_critical_path_hops
    uint32_t tail_unit_busy_slots


cdef struct EncoderBuffers:
    # Scratch of an encoding.
    WarpShape* warp_shapes
    uint32_t* warp_index
    WarpOp* op_shapes
    uint32_t* op_index
    int32_t* deltas
    int64_t* wide
    int64_t* begun       # line at which the last op at this position of a warp began, -1 where there was none
    ShapeHashTable warp_table
    ShapeHashTable op_table


cdef void release(EncoderBuffers* work) noexcept nogil:
    free(work.warp_shapes)
    free(work.warp_index)
    free(work.op_shapes)
    free(work.op_index)
    free(work.deltas)
    free(work.wide)
    free(work.begun)
    free(work.warp_table.slots)
    free(work.op_table.slots)


cdef int find_shapes(
    EncoderBuffers* work, ChunkCounts* counts, const WarpRecord* warps, const WarpOp* ops
) noexcept nogil:
    cdef size_t i
    cdef WarpOp op
    cdef WarpShape warp
    work.warp_shapes = <WarpShape*>malloc((counts.warps + 1) * sizeof(WarpShape))
    work.warp_index = <uint32_t*>malloc((counts.warps + 1) * sizeof(uint32_t))
    work.op_shapes = <WarpOp*>malloc((counts.ops + 1) * sizeof(WarpOp))
    work.op_index = <uint32_t*>malloc((counts.ops + 1) * sizeof(uint32_t))
    if (
        not work.warp_shapes or not work.warp_index or not work.op_shapes or not work.op_index
        or not open_table(&work.warp_table, counts.warps) or not open_table(&work.op_table, counts.ops)
    ):
        return OUT_OF_MEMORY
    for i in range(counts.warps):
        warp.warp, warp.n_ops = warps[i].warp, warps[i].n_ops
        warp.tail_gap_instructions = warps[i].tail_gap_instructions
        warp.tail_critical_path_cycles = warps[i].tail_critical_path_cycles
        warp.tail_critical_path_hops = warps[i].tail_critical_path_hops
        warp.tail_unit_busy_slots = warps[i].tail_unit_busy_slots
        work.warp_index[i] = <uint32_t>find_shape(
            &work.warp_table, <uint8_t*>work.warp_shapes, &counts.warp_shapes,
            <const uint8_t*>&warp, sizeof(WarpShape), sizeof(WarpShape),
        )
    for i in range(counts.ops):
        op = ops[i]
        op.first_line = 0
        work.op_index[i] = <uint32_t>find_shape(
            &work.op_table, <uint8_t*>work.op_shapes, &counts.op_shapes,
            <const uint8_t*>&op, sizeof(WarpOp), sizeof(WarpOp),
        )
    return FINE


cdef int predict_lines(
    EncoderBuffers* work, ChunkCounts* counts, const WarpRecord* warps, const WarpOp* ops, const uint64_t* lines
) noexcept nogil:
    """Lines as distances from their predictions."""
    cdef size_t i, k, j, longest = 0
    cdef const WarpOp* op
    cdef int64_t before = 0, line, delta
    for i in range(counts.warps):
        longest = max(longest, <size_t>warps[i].n_ops)
    work.deltas = <int32_t*>malloc((counts.lines + 1) * sizeof(int32_t))
    work.wide = <int64_t*>malloc((counts.lines + 1) * sizeof(int64_t))
    work.begun = <int64_t*>malloc((longest + 1) * sizeof(int64_t))
    if not work.deltas or not work.wide or not work.begun:
        return OUT_OF_MEMORY
    memset(work.begun, 0xFF, (longest + 1) * sizeof(int64_t))
    for i in range(counts.warps):
        for k in range(warps[i].n_ops):
            op = &ops[warps[i].first_op + k]
            if op.n_lines == 0:
                continue
            if work.begun[k] >= 0:
                before = work.begun[k]
            work.begun[k] = <int64_t>(lines[op.first_line] >> 8)
            for j in range(op.first_line, op.first_line + op.n_lines):
                line = <int64_t>(lines[j] >> 8)
                delta = line - before
                if -2147483648 < delta <= 2147483647:
                    work.deltas[j] = <int32_t>delta
                else:
                    work.deltas[j] = ESCAPE
                    work.wide[counts.wide] = delta
                    counts.wide += 1
                before = line
    return FINE


cdef void write_columns(
    uint8_t* target, EncoderBuffers* work, const ChunkCounts* counts, const BlockRecord* blocks, const uint64_t* lines
) noexcept nogil:
    cdef Columns c = lay_out(target, counts)
    cdef size_t i, n, width
    cdef uint32_t before = 0
    for i in range(counts.blocks):
        store_u32(c.block_step, i, blocks[i].block - before)
        before = blocks[i].block
        store_u32(c.block_warps, i, blocks[i].n_warps)
    n = counts.warp_shapes
    for i in range(n):
        store_u32(c.warp_shapes, i, work.warp_shapes[i].warp)
        store_u32(c.warp_shapes, n + i, work.warp_shapes[i].n_ops)
        store_u32(c.warp_shapes, 2 * n + i, work.warp_shapes[i].tail_gap_instructions)
        store_u32(c.warp_shapes, 3 * n + i, work.warp_shapes[i].tail_critical_path_cycles)
        store_u32(c.warp_shapes, 4 * n + i, work.warp_shapes[i].tail_critical_path_hops)
        store_u32(c.warp_shapes, 5 * n + i, work.warp_shapes[i].tail_unit_busy_slots)
    width = index_width(n)
    for i in range(counts.warps):
        store_index(c.warp_index, width, i, work.warp_index[i])
    n = counts.op_shapes
    for i in range(n):
        store_u32(c.op_shapes, i, work.op_shapes[i].gap_instructions)
        store_u32(c.op_shapes, n + i, work.op_shapes[i].critical_path_cycles)
        store_u32(c.op_shapes, 2 * n + i, work.op_shapes[i].critical_path_hops)
        store_u32(c.op_shapes, 3 * n + i, work.op_shapes[i].use_distance)
        store_u32(c.op_shapes, 4 * n + i, work.op_shapes[i].use_cycles)
        store_u16(c.op_shapes + 20 * n, i, work.op_shapes[i].use_hops)
        c.op_shapes[22 * n + i] = work.op_shapes[i].n_lines
        c.op_shapes[23 * n + i] = work.op_shapes[i].kind
        c.op_shapes[24 * n + i] = work.op_shapes[i].bytes_per_lane
        c.op_shapes[25 * n + i] = work.op_shapes[i].flags
        store_u16(c.op_shapes + 26 * n, i, work.op_shapes[i].unit_busy_slots)
    width = index_width(n)
    for i in range(counts.ops):
        store_index(c.op_index, width, i, work.op_index[i])
    for i in range(counts.lines):
        c.masks[i] = <uint8_t>lines[i]
    if counts.lines:
        memcpy(c.deltas, work.deltas, 4 * counts.lines)
    if counts.wide:
        memcpy(c.wide, work.wide, 8 * counts.wide)


def encode_columns(
    const BlockRecord[::1] blocks, const WarpRecord[::1] warps, const WarpOp[::1] ops, const uint64_t[::1] lines
):
    """Columns of a chunk.

    Returns
    -------
    (columns as uint8 array, number of op shapes, of warp shapes, of wide deltas)
    """
    check_records(blocks, warps, ops, lines)
    cdef ChunkCounts counts
    cdef EncoderBuffers work
    cdef int code
    memset(&counts, 0, sizeof(ChunkCounts))
    memset(&work, 0, sizeof(EncoderBuffers))
    set_shape_bytes(&counts, FORMAT_VERSION)
    counts.blocks, counts.warps = <size_t>blocks.shape[0], <size_t>warps.shape[0]
    counts.ops, counts.lines = <size_t>ops.shape[0], <size_t>lines.shape[0]
    cdef const BlockRecord* block_at = &blocks[0] if counts.blocks else NULL
    cdef const WarpRecord* warp_at = &warps[0] if counts.warps else NULL
    cdef const WarpOp* op_at = &ops[0] if counts.ops else NULL
    cdef const uint64_t* line_at = &lines[0] if counts.lines else NULL
    cdef uint8_t[::1] target
    try:
        with nogil:
            code = find_shapes(&work, &counts, warp_at, op_at)
            if code == FINE:
                code = predict_lines(&work, &counts, warp_at, op_at, line_at)
        if code != FINE:
            raise fault(code, 0)
        columns = np.empty(column_bytes(&counts), np.uint8)
        target = columns
        if columns.size:
            with nogil:
                write_columns(&target[0], &work, &counts, block_at, line_at)
    finally:
        release(&work)
    return columns, counts.op_shapes, counts.warp_shapes, counts.wide


# -- decoding ---------------------------------------------------------------------------------------------------------

cdef int decode_blocks(
    BlockRecord* blocks, const Columns* c, const ChunkCounts* counts, uint64_t grid_blocks, size_t* position
) noexcept nogil:
    cdef size_t i, at = 0
    cdef uint32_t number = 0, n
    for i in range(counts.blocks):
        position[0] = i
        number += load_u32(c.block_step, i)
        if number >= grid_blocks:
            return BLOCK_NUMBER
        n = load_u32(c.block_warps, i)
        if n > counts.warps - at:
            return BLOCK_WARPS
        blocks[i].block, blocks[i].first_warp, blocks[i].n_warps = number, <uint32_t>at, n
        at += n
    return FINE if at == counts.warps else BLOCK_WARPS


cdef int decode_warps(
    WarpRecord* warps, const Columns* c, const ChunkCounts* counts, int version, uint64_t block_warps, size_t* position,
    size_t* longest,
) noexcept nogil:
    cdef size_t i, shape, at = 0, n = counts.warp_shapes, width = index_width(n)
    cdef bint old = version < TAIL_UNIT_BUSY_SLOTS_SINCE
    cdef uint32_t n_ops
    for i in range(n):
        if load_u32(c.warp_shapes, i) >= block_warps:
            position[0] = i
            return WARP_NUMBER
    for i in range(counts.warps):
        position[0] = i
        shape = load_index(c.warp_index, width, i)
        if shape >= n:
            return WARP_SHAPE
        n_ops = load_u32(c.warp_shapes, n + shape)
        if n_ops > counts.ops - at:
            return WARP_OPS
        warps[i].warp = load_u32(c.warp_shapes, shape)
        warps[i].first_op = <uint32_t>at
        warps[i].n_ops = n_ops
        warps[i].tail_gap_instructions = load_u32(c.warp_shapes, 2 * n + shape)
        warps[i].tail_critical_path_cycles = load_u32(c.warp_shapes, 3 * n + shape)
        warps[i].tail_critical_path_hops = load_u32(c.warp_shapes, 4 * n + shape)
        warps[i].tail_unit_busy_slots = 0 if old else load_u32(c.warp_shapes, 5 * n + shape)
        at += n_ops
        longest[0] = max(longest[0], <size_t>n_ops)
    return FINE if at == counts.ops else WARP_OPS


cdef int read_op_shapes(
    WarpOp* shapes, const Columns* c, const ChunkCounts* counts, int version, size_t* position
) noexcept nogil:
    cdef size_t i, n = counts.op_shapes
    cdef bint old = version < UNIT_BUSY_SLOTS_SINCE
    cdef int code
    for i in range(n):
        shapes[i].first_line = 0
        shapes[i].gap_instructions = load_u32(c.op_shapes, i)
        shapes[i].critical_path_cycles = load_u32(c.op_shapes, n + i)
        shapes[i].critical_path_hops = load_u32(c.op_shapes, 2 * n + i)
        shapes[i].use_distance = load_u32(c.op_shapes, 3 * n + i)
        shapes[i].use_cycles = load_u32(c.op_shapes, 4 * n + i)
        shapes[i].use_hops = load_u16(c.op_shapes + 20 * n, i)
        shapes[i].n_lines = c.op_shapes[22 * n + i]
        shapes[i].kind = c.op_shapes[23 * n + i]
        shapes[i].bytes_per_lane = c.op_shapes[24 * n + i]
        shapes[i].flags = c.op_shapes[25 * n + i]
        shapes[i].unit_busy_slots = 0 if old else load_u16(c.op_shapes + 26 * n, i)
        code = check_op(&shapes[i])
        if code != FINE:
            position[0] = i
            return code
    return FINE


cdef int decode_ops(
    WarpOp* ops, uint64_t* lines, const WarpRecord* warps, const WarpOp* shapes, int64_t* begun,
    const Columns* c, const ChunkCounts* counts, size_t* position,
) noexcept nogil:
    """The hot loop: one shape copied per op, one addition per line."""
    cdef size_t i, k, j, end, shape, at = 0, wide = 0, first, width = index_width(counts.op_shapes)
    cdef int64_t line = 0, delta, difference
    cdef uint8_t mask
    cdef const uint8_t* faults
    cdef WarpOp* op
    for i in range(counts.warps):
        first = warps[i].first_op
        for k in range(warps[i].n_ops):
            shape = load_index(c.op_index, width, first + k)
            if shape >= counts.op_shapes:
                position[0] = first + k
                return OP_SHAPE
            op = &ops[first + k]
            op[0] = shapes[shape]
            op.first_line = <uint32_t>at
            if op.n_lines == 0:
                continue
            end = at + op.n_lines
            if end > counts.lines:
                position[0] = first + k
                return OP_LINES
            if begun[k] >= 0:
                line = begun[k]
            faults = MASK_FAULTS[op.kind == OP_LOAD]
            for j in range(at, end):
                delta = load_i32(c.deltas, j)
                if unlikely(delta == ESCAPE):
                    if wide >= counts.wide:
                        position[0] = j
                        return WIDE_COUNT
                    difference = load_i64(c.wide, wide)
                    wide += 1
                    # of two numbers of 56 bits: anything larger must not overflow
                    if not -(<int64_t>1 << 56) < difference < (<int64_t>1 << 56):
                        position[0] = j
                        return LINE_ADDRESS
                    delta = difference
                line += delta
                mask = c.masks[j]
                if unlikely(<uint64_t>line >> 56 | faults[mask]):
                    position[0] = j
                    return LINE_ADDRESS if <uint64_t>line >> 56 else faults[mask]
                lines[j] = <uint64_t>line << 8 | mask
            begun[k] = <int64_t>(lines[at] >> 8)
            at = end
    position[0] = at
    if at != counts.lines:
        return OP_LINES
    return FINE if wide == counts.wide else WIDE_COUNT


def decode_columns(
    const uint8_t[::1] columns, size_t n_blocks, size_t n_warps, size_t n_ops, size_t n_lines,
    size_t n_op_shapes, size_t n_warp_shapes, size_t n_wide,
    uint64_t grid_blocks=1 << 32, uint64_t block_warps=1 << 32, int version=FORMAT_VERSION,
):
    """Records of a chunk from its columns, whatever these hold: a contradiction raises CodecError.

    Counts must be below 2^32 (the caller bounds them before it has the columns decompressed). Unit slots that files of `version`
    don't have are zero.

    Returns
    -------
    (blocks, warps, ops, lines)
    """
    cdef ChunkCounts counts
    cdef Columns c
    cdef size_t position = 0, longest = 0
    cdef int code
    cdef int64_t* begun = NULL
    cdef WarpOp* shapes = NULL
    if max(n_blocks, n_warps, n_ops, n_lines) >= 1 << 32:
        raise CodecError("more than 2^32 records in a chunk")
    if not 1 <= version <= FORMAT_VERSION:
        raise CodecError(f"columns of format version {version}")
    if n_op_shapes > n_ops or n_warp_shapes > n_warps or n_wide > n_lines:
        raise CodecError("more shapes or wide deltas than records")
    counts.blocks, counts.warps, counts.ops, counts.lines = n_blocks, n_warps, n_ops, n_lines
    counts.op_shapes, counts.warp_shapes, counts.wide = n_op_shapes, n_warp_shapes, n_wide
    set_shape_bytes(&counts, version)
    if column_bytes(&counts) != <size_t>columns.shape[0]:
        raise CodecError(f"the columns have {columns.shape[0]} bytes, their counts say {column_bytes(&counts)}")
    c = lay_out(<uint8_t*>&columns[0] if columns.shape[0] else NULL, &counts)
    blocks = np.empty(n_blocks, BLOCK_DTYPE)
    warps = np.empty(n_warps, WARP_DTYPE)
    ops = np.empty(n_ops, OP_DTYPE)
    lines = np.empty(n_lines, LINE_DTYPE)
    cdef BlockRecord[::1] block_view = blocks
    cdef WarpRecord[::1] warp_view = warps
    cdef WarpOp[::1] op_view = ops
    cdef uint64_t[::1] line_view = lines
    cdef BlockRecord* block_at = &block_view[0] if n_blocks else NULL
    cdef WarpRecord* warp_at = &warp_view[0] if n_warps else NULL
    cdef WarpOp* op_at = &op_view[0] if n_ops else NULL
    cdef uint64_t* line_at = &line_view[0] if n_lines else NULL
    try:
        with nogil:
            code = decode_blocks(block_at, &c, &counts, grid_blocks, &position)
            if code == FINE:
                code = decode_warps(warp_at, &c, &counts, version, block_warps, &position, &longest)
            if code == FINE:
                begun = <int64_t*>malloc((longest + 1) * sizeof(int64_t))
                shapes = <WarpOp*>malloc((n_op_shapes + 1) * sizeof(WarpOp))
                if not begun or not shapes:
                    code = OUT_OF_MEMORY
                else:
                    memset(begun, 0xFF, (longest + 1) * sizeof(int64_t))
                    code = read_op_shapes(shapes, &c, &counts, version, &position)
            if code == FINE:
                code = decode_ops(op_at, line_at, warp_at, shapes, begun, &c, &counts, &position)
    finally:
        free(begun)
        free(shapes)
    if code != FINE:
        raise fault(code, position)
    return blocks, warps, ops, lines
