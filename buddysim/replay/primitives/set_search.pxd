"""Search and LRU order of the ways of a set (`set_search.h`)."""
from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef extern from "set_search.h" nogil:
    const uint32_t SET_EMPTY
    const uint8_t[16] SECTOR_COUNT
    int64_t set_match(const uint32_t* tags, int padded_ways, uint32_t tag) noexcept
    void push_number(uint32_t* four, uint32_t first) noexcept
    void push_time(int64_t* four, int64_t first) noexcept
    void order_init(char* order, int ways) noexcept
    int64_t order_touch_oldest(char* order, int ways, int oldest_bit) noexcept
    void order_touch(char* order, int ways, int64_t way) noexcept
    int64_t order_at(const char* order, int ways, int position) noexcept
