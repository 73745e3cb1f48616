"""A reservation table: time in slots of equal length, each reserved by one user, in any order of time.

A pseudo-channel has two: of its data bus, with a slot for each burst of 32 B, and of its activations, with a slot for each that
the rate allows. So neither exceeds its rate, whatever the order of the requests.

A table has 16,384 slots in a ring, from about the current event on, and later ones in the run's `Horizon`. No request arrives
before the current event. Slots of refreshes are reserved from the start.
"""
from libc.stdint cimport int64_t, uint64_t

from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.division cimport high_product
from buddysim.replay.primitives.horizon cimport Horizon

cdef extern from *:
    int count_trailing_zeros "__builtin_ctzll"(unsigned long long x) noexcept nogil

cdef extern from * nogil:
    """
    #include <string.h>
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    #error "buddysim needs a little-endian machine: it reads reservation tables byte by byte"
    #endif

    /* 64 bits of a bit string, with one load: bit i of the result is bit `bit` - `bit` % 8 + i of the string. */
    static inline uint64_t bits_around(const uint64_t *string, uint64_t bit)
    {
        uint64_t bits;
        memcpy(&bits, (const char *)string + (bit >> 3), sizeof bits);
        return bits;
    }

    /* Writes the bits back. */
    static inline void set_bits_around(uint64_t *string, uint64_t bit, uint64_t bits)
    {
        memcpy((char *)string + (bit >> 3), &bits, sizeof bits);
    }
    """
    uint64_t bits_around(const uint64_t* string, uint64_t bit) noexcept
    void set_bits_around(uint64_t* string, uint64_t bit, uint64_t bits) noexcept

cdef enum:
    TABLE_WORDS = 256
    TABLE_SLOTS = 64 * TABLE_WORDS  # 16,384: bursts of 37 us at 14 GB/s

# What the tables of one kind have in common.
cdef struct SlotGrid:
    int64_t slot_ps        # length of a slot, at least 2
    uint64_t slots_per_ps  # 2^64 / slot_ps, rounded up
    int64_t refresh_ps     # duration of a refresh, which reserves its slots; 0: no refresh
    int64_t refresh_interval_ps

cdef struct ReservationTable:
    int64_t base_slot   # first slot of the ring; the current event's or before it
    int64_t full_slot   # first slot of a run of reserved slots
    int64_t full_slots  # its length
    int64_t full_end    # the slot after it
    int64_t last_slot   # latest slot reserved; -1: none
    int64_t far_pages   # pages of later slots in the `Horizon`
    uint64_t[256] bits  # 1: reserved; slot s is bit s % 64 of word (s / 64) % TABLE_WORDS
    int64_t refresh_offset_ps  # from a multiple of the interval to this table's refresh; less than the interval


cdef int64_t search_slots(const SlotGrid* grid, ReservationTable* table, Horizon* horizon, int64_t slot, int slots, int64_t spacing,
                          int64_t* first) noexcept nogil
cdef int64_t first_free_slot(const SlotGrid* grid, ReservationTable* table, Horizon* horizon, int64_t slot) noexcept nogil
cdef void advance_table(const SlotGrid* grid, ReservationTable* table, Horizon* horizon) noexcept nogil
cdef void reserve_slot(const SlotGrid* grid, ReservationTable* table, Horizon* horizon, int64_t slot) noexcept nogil
cdef void release_slot(const SlotGrid* grid, ReservationTable* table, Horizon* horizon, int64_t slot) noexcept nogil
cdef SlotGrid slot_grid(int64_t slot_ps, int64_t refresh_ps, int64_t refresh_interval_ps) noexcept
cdef void table_init(const SlotGrid* grid, ReservationTable* table, int64_t refresh_offset_ps) noexcept


cdef inline int64_t slot_at(const SlotGrid* grid, int64_t t) noexcept nogil:
    """The slot that contains `t`: t / slot_ps, exact for t < 2^64 / slot_ps (two hours, for bursts of 2.3 ns)."""
    return <int64_t>high_product(<uint64_t>t, grid.slots_per_ps)


cdef inline int64_t skip_full_run(const ReservationTable* table, int64_t slot) noexcept nogil:
    """`slot`; or, if it lies in the known run of reserved slots, the slot after that run."""
    if <uint64_t>(slot - table.full_slot) < <uint64_t>table.full_slots:
        return table.full_end
    return slot


cdef inline int64_t reserve_slots(const SlotGrid* grid, ReservationTable* table, Horizon* horizon, int64_t slot, int slots,
                                  int64_t spacing, int64_t* first) noexcept nogil:
    """Reserves the first free slots, from `slot` on and at least `spacing` apart; returns the last one."""
    cdef int64_t begin = skip_full_run(table, slot)
    cdef uint64_t bit = begin & (TABLE_SLOTS - 1)
    cdef uint64_t before, after, reserved, earliest
    if unlikely(bit > TABLE_SLOTS - 64 or <uint64_t>(begin - table.base_slot) >= TABLE_SLOTS - 64):
        return search_slots(grid, table, horizon, slot, slots, spacing, first)
    before = bits_around(table.bits, bit)
    after = before | before + (<uint64_t>1 << (bit & 7))    # the carry stops at the first free slot
    earliest = reserved = after ^ before
    for _ in range(1, slots):
        before = after
        after |= after + (reserved << spacing)
        reserved = after ^ before
    if unlikely(not reserved):                                 # too few free slots
        return search_slots(grid, table, horizon, slot, slots, spacing, first)
    first[0] = (begin & ~<int64_t>7) + count_trailing_zeros(earliest)
    set_bits_around(table.bits, bit, after)
    slot = (begin & ~<int64_t>7) + count_trailing_zeros(reserved)
    table.last_slot = slot if slot > table.last_slot else table.last_slot
    return slot


cdef inline int64_t reserve_first_free(const SlotGrid* grid, ReservationTable* table, Horizon* horizon,
                                       int64_t slot) noexcept nogil:
    """Reserves the first free slot, from `slot` on."""
    cdef int64_t first
    return reserve_slots(grid, table, horizon, slot, 1, 1, &first)
