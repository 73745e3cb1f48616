"""A chunk's columns: shape tables, indices into them, and line addresses as distances from a prediction.

An op without its `first_line` is a *shape*; the same instruction of every warp has the same one, so a chunk stores each
shape once and one small number per op. Warps likewise. A line's address is stored as its distance from where the op at
the same position of the warp before it began: see `ref_codec.py` for the whole of it in fifty readable lines.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    ESCAPE = -2147483648      # this delta is the next of the wide ones
    MAX_LINES = 64            # of one op

cdef struct Columns:
    # Where each column of a chunk begins.
    uint8_t* block_step
    uint8_t* block_warps
    uint8_t* warp_shapes
    uint8_t* warp_index
    uint8_t* op_shapes
    uint8_t* op_index
    uint8_t* masks
    uint8_t* deltas
    uint8_t* wide

cdef enum:
    FORMAT_VERSION = 4
    UNIT_BUSY_SLOTS_SINCE = 2        # the version from which on ops have unit slots
    TAIL_UNIT_BUSY_SLOTS_SINCE = 3   # and warps' tails

cdef struct ChunkCounts:
    size_t blocks
    size_t warps
    size_t ops
    size_t lines
    size_t op_shapes
    size_t warp_shapes
    size_t wide
    size_t op_shape_bytes
    size_t warp_shape_bytes


cdef inline uint16_t load_u16(const uint8_t* column, size_t i) noexcept nogil:
    cdef uint16_t value
    memcpy(&value, column + 2 * i, 2)
    return value


cdef inline uint32_t load_u32(const uint8_t* column, size_t i) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, column + 4 * i, 4)
    return value


cdef inline int32_t load_i32(const uint8_t* column, size_t i) noexcept nogil:
    cdef int32_t value
    memcpy(&value, column + 4 * i, 4)
    return value


cdef inline int64_t load_i64(const uint8_t* column, size_t i) noexcept nogil:
    cdef int64_t value
    memcpy(&value, column + 8 * i, 8)
    return value


cdef inline void store_u16(uint8_t* column, size_t i, uint16_t value) noexcept nogil:
    memcpy(column + 2 * i, &value, 2)


cdef inline void store_u32(uint8_t* column, size_t i, uint32_t value) noexcept nogil:
    memcpy(column + 4 * i, &value, 4)


cdef inline void store_i64(uint8_t* column, size_t i, int64_t value) noexcept nogil:
    memcpy(column + 8 * i, &value, 8)


cdef inline size_t index_width(size_t n_shapes) noexcept nogil:
    return 1 if n_shapes <= 256 else 2 if n_shapes <= 65536 else 4


cdef inline size_t load_index(const uint8_t* column, size_t width, size_t i) noexcept nogil:
    if width == 1:
        return column[i]
    if width == 2:
        return load_u16(column, i)
    return load_u32(column, i)


cdef inline void store_index(uint8_t* column, size_t width, size_t i, size_t value) noexcept nogil:
    if width == 1:
        column[i] = <uint8_t>value
    elif width == 2:
        store_u16(column, i, <uint16_t>value)
    else:
        store_u32(column, i, <uint32_t>value)


cdef inline void set_shape_bytes(ChunkCounts* counts, int version) noexcept nogil:
    """Sizes of shapes in files of a version."""
    counts.op_shape_bytes = 28 if version >= UNIT_BUSY_SLOTS_SINCE else 26
    counts.warp_shape_bytes = 24 if version >= TAIL_UNIT_BUSY_SLOTS_SINCE else 20


cdef inline size_t column_bytes(const ChunkCounts* counts) noexcept nogil:
    return (
        8 * counts.blocks
        + counts.warp_shape_bytes * counts.warp_shapes + index_width(counts.warp_shapes) * counts.warps
        + counts.op_shape_bytes * counts.op_shapes + index_width(counts.op_shapes) * counts.ops + 5 * counts.lines + 8 * counts.wide
    )


cdef inline Columns lay_out(uint8_t* start, const ChunkCounts* counts) noexcept nogil:
    """The columns in the order of the file."""
    cdef Columns c
    c.block_step = start
    c.block_warps = c.block_step + 4 * counts.blocks
    c.warp_shapes = c.block_warps + 4 * counts.blocks
    c.warp_index = c.warp_shapes + counts.warp_shape_bytes * counts.warp_shapes
    c.op_shapes = c.warp_index + index_width(counts.warp_shapes) * counts.warps
    c.op_index = c.op_shapes + counts.op_shape_bytes * counts.op_shapes
    c.masks = c.op_index + index_width(counts.op_shapes) * counts.ops
    c.deltas = c.masks + counts.lines
    c.wide = c.deltas + 4 * counts.lines
    return c
