"""Lanes of one warp memory operation -> the 128 B lines it touches."""
from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef enum:
    LINE_BITS = 7               # a line is 128 B
    SECTOR_BITS = 5             # of four sectors of 32 B
    MAX_LANES = 32
    MAX_BYTES_PER_LANE = 128    # so a lane touches two lines at most
    MAX_OP_LINES = 64           # MAX_LANES * 2
    WORD_BITS = 2               # a bank of the L1's data is a word of 4 B wide
    WORD_BANKS = 32
    MOST_TURNS = 32             # of banks of words, as a trace tells them: that many or more

cdef int coalesce_op(
    const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane, bint is_store, uint64_t* lines
) noexcept nogil
cdef int atomic_conflicts(const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane) noexcept nogil
cdef uint8_t bank_words(
    const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane, const uint64_t* lines, int n_lines
) noexcept nogil
