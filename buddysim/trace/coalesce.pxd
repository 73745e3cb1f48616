"""Coalescing: from the lane addresses of one warp memory operation to its 128 B lines and bank conflicts."""
from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef enum:
    LINE_BITS = 7               # a line is 128 B
    SECTOR_BITS = 5             # of four sectors of 32 B
    MAX_LANES = 32
    MAX_BYTES_PER_LANE = 128    # so a lane accesses at most two lines
    MAX_OP_LINES = 64           # MAX_LANES * 2
    WORD_BITS = 2               # a data bank of the L1 is 4 B wide
    WORD_BANKS = 32
    MAX_CONFLICT_CYCLES = 32    # conflict cycles of one operation saturate here: a trace keeps 5 bits

cdef int coalesce_op(
    const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane, bint is_store, uint64_t* lines
) noexcept nogil
cdef int atomic_conflicts(const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane) noexcept nogil
cdef uint8_t bank_words(
    const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane, const uint64_t* lines, int n_lines
) noexcept nogil
