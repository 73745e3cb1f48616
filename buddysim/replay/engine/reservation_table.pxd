"""A calendar: time in slots of equal length, each taken by one user, in any order of time.

A pseudo-channel has two: of its data bus (a slot per burst of 32 B) and of its activations (a slot per activation that the rate
allows). So neither ever carries more than its rate, whatever the order in which requests are booked.

16,384 slots are kept; what lies before them is past. Slots of refreshes are taken from the start.
"""
from libc.stdint cimport int64_t, uint64_t

from buddysim.replay.engine.division cimport high_product
from buddysim.replay.engine.compiler_hints cimport unlikely

cdef extern from *:
    int count_trailing_zeros "__builtin_ctzll"(unsigned long long x) noexcept nogil

cdef extern from "reservation_table.h" nogil:
    uint64_t bits_around(const uint64_t* string, uint64_t bit) noexcept
    void set_bits_around(uint64_t* string, uint64_t bit, uint64_t bits) noexcept

cdef enum:
    CALENDAR_WORDS = 256
    CALENDAR_SLOTS = 64 * CALENDAR_WORDS        # 16,384: of bursts, 37 us at 14 GB/s

cdef struct SlotGrid:           # what calendars of a kind share
    int64_t slot_ps             # length of a slot
    uint64_t slots_per_ps       # 2^64 / slot_ps, rounded up
    int64_t refresh_ps          # a refresh takes the slots of so long, 0: there is none,
    int64_t refresh_interval_ps  # every so often

cdef struct Calendar:
    int64_t base_slot           # the oldest slot
    int64_t full_slot           # from this slot on
    int64_t full_slots          # so many are taken,
    int64_t full_end            # up to this one
    int64_t last_slot           # the latest slot taken: the next one is likely near it
    int64_t next_refresh_ps
    uint64_t[256] bits          # bit = slot taken; slot s is bit s % 64 of word (s / 64) % CALENDAR_WORDS


cdef int64_t calendar_search(const SlotGrid* grid, Calendar* calendar, int64_t now_ps, int64_t slot, int slots, int64_t spacing,
                             int64_t* first) noexcept nogil
cdef int64_t calendar_first_free(const SlotGrid* grid, Calendar* calendar, int64_t now_ps, int64_t slot) noexcept nogil
cdef void calendar_forget(const SlotGrid* grid, Calendar* calendar, int64_t now_ps) noexcept nogil
cdef void calendar_take(Calendar* calendar, int64_t slot) noexcept nogil
cdef void calendar_release(const SlotGrid* grid, Calendar* calendar, int64_t slot) noexcept nogil
cdef bint calendar_holds(const Calendar* calendar, int64_t slot) noexcept nogil
cdef SlotGrid slot_grid(int64_t slot_ps, int64_t refresh_ps, int64_t refresh_interval_ps) noexcept
cdef void calendar_init(const SlotGrid* grid, Calendar* calendar) noexcept


cdef inline int64_t slot_at(const SlotGrid* grid, int64_t t) noexcept nogil:
    """The slot that holds `t`: t / slot_ps, exact for t < 2^64 / slot_ps (two hours, for bursts of 2.3 ns)."""
    return <int64_t>high_product(<uint64_t>t, grid.slots_per_ps)


cdef inline int64_t calendar_past_full(const Calendar* calendar, int64_t slot) noexcept nogil:
    """`slot`, or the first one after the slots known to be taken, where it is one of them."""
    if <uint64_t>(slot - calendar.full_slot) < <uint64_t>calendar.full_slots:
        return calendar.full_end
    return slot


cdef inline void calendar_full(Calendar* calendar, int64_t slot, int64_t slots) noexcept nogil:
    """Remembers that so many slots from `slot` on are taken; of such runs the latest is kept."""
    if slot != calendar.full_end:
        calendar.full_slot = slot
    calendar.full_end = slot + slots
    calendar.full_slots = calendar.full_end - calendar.full_slot


cdef inline int64_t calendar_place(const SlotGrid* grid, Calendar* calendar, int64_t now_ps, int64_t slot, int slots,
                                   int64_t spacing, int64_t* first) noexcept nogil:
    """Takes the first free slots, the first at or after `slot`, each at least `spacing` after the one before; returns the last."""
    cdef int64_t begin = calendar_past_full(calendar, slot)
    cdef uint64_t bit = begin & (CALENDAR_SLOTS - 1)
    cdef uint64_t before, after, taken
    if unlikely(bit > CALENDAR_SLOTS - 64 or <uint64_t>(begin - calendar.base_slot) >= CALENDAR_SLOTS - 64):
        return calendar_search(grid, calendar, now_ps, slot, slots, spacing, first)
    before = bits_around(calendar.bits, bit)
    after = before | before + (<uint64_t>1 << (bit & 7))    # the sum carries to the first free slot
    taken = after ^ before
    first[0] = (begin & ~<int64_t>7) + count_trailing_zeros(taken)
    for _ in range(1, slots):
        before = after
        after |= after + (taken << spacing)
        taken = after ^ before
    if unlikely(not taken):                                 # none was free, or not so many
        return calendar_search(grid, calendar, now_ps, slot, slots, spacing, first)
    set_bits_around(calendar.bits, bit, after)
    slot = (begin & ~<int64_t>7) + count_trailing_zeros(taken)
    calendar.last_slot = slot if slot > calendar.last_slot else calendar.last_slot
    return slot


cdef inline int64_t calendar_take_one(const SlotGrid* grid, Calendar* calendar, int64_t now_ps, int64_t slot) noexcept nogil:
    """Takes the first free slot at or after `slot`."""
    cdef int64_t first
    return calendar_place(grid, calendar, now_ps, slot, 1, 1, &first)
