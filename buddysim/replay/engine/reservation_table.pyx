"""What a calendar rarely does (moves on, searches far, marks refreshes), and a class over one that tests compare with its twin."""
from libc.stdint cimport int64_t, uint64_t


cdef void calendar_mark_refresh(const SlotGrid* grid, Calendar* calendar, int64_t first, int64_t end) noexcept nogil:
    """Takes the slots in [first, end) that refreshes need; one that runs over the end goes on at the next call."""
    cdef int64_t slot, last, past = first * grid.slot_ps - grid.refresh_ps - calendar.next_refresh_ps
    if past > 0:                                    # those that end before the first slot
        calendar.next_refresh_ps += past / grid.refresh_interval_ps * grid.refresh_interval_ps
    while calendar.next_refresh_ps < end * grid.slot_ps:
        slot = calendar.next_refresh_ps / grid.slot_ps
        slot = slot if slot > first else first
        last = (calendar.next_refresh_ps + grid.refresh_ps) / grid.slot_ps
        while slot < last and slot < end:
            calendar.bits[(slot >> 6) & (CALENDAR_WORDS - 1)] |= <uint64_t>1 << (slot & 63)
            slot += 1
        if last > end:
            return
        calendar.next_refresh_ps += grid.refresh_interval_ps


cdef void calendar_advance(const SlotGrid* grid, Calendar* calendar, int64_t base_slot) noexcept nogil:
    """Forgets the slots before `base_slot` (of a word, the first); the space becomes the far end, its refreshes marked."""
    cdef int64_t word, first_new = calendar.base_slot + CALENDAR_SLOTS
    if base_slot >= first_new:
        for word in range(CALENDAR_WORDS):
            calendar.bits[word] = 0
        first_new = base_slot
    else:
        for word in range(calendar.base_slot >> 6, base_slot >> 6):
            calendar.bits[word & (CALENDAR_WORDS - 1)] = 0
    calendar.base_slot = base_slot
    if grid.refresh_ps:
        calendar_mark_refresh(grid, calendar, first_new, base_slot + CALENDAR_SLOTS)


cdef void calendar_take(Calendar* calendar, int64_t slot) noexcept nogil:
    calendar.bits[(slot >> 6) & (CALENDAR_WORDS - 1)] |= <uint64_t>1 << (slot & 63)
    calendar.last_slot = slot if slot > calendar.last_slot else calendar.last_slot


cdef void calendar_forget(const SlotGrid* grid, Calendar* calendar, int64_t now_ps) noexcept nogil:
    """Nothing will be asked for before `now_ps`: the calendar need not go further back."""
    cdef int64_t base_slot = slot_at(grid, now_ps) & ~<int64_t>63
    if base_slot > calendar.base_slot:
        calendar_advance(grid, calendar, base_slot)


cdef bint calendar_holds(const Calendar* calendar, int64_t slot) noexcept nogil:
    return calendar.base_slot <= slot < calendar.base_slot + CALENDAR_SLOTS


cdef void calendar_reach(const SlotGrid* grid, Calendar* calendar, int64_t now_ps, int64_t slot) noexcept nogil:
    """Moves the calendar on, where need be, until it holds `slot` or one before it."""
    if slot >= calendar.base_slot + CALENDAR_SLOTS:
        calendar_forget(grid, calendar, now_ps)
    if slot >= calendar.base_slot + CALENDAR_SLOTS:
        calendar_advance(grid, calendar, (slot & ~<int64_t>63) - (CALENDAR_SLOTS - 64))


cdef int64_t calendar_first_free(const SlotGrid* grid, Calendar* calendar, int64_t now_ps, int64_t slot) noexcept nogil:
    """The first free slot at or after `slot`; the calendar moves on where that lies beyond its end."""
    cdef int64_t found, word
    cdef uint64_t open_slots
    while True:
        slot = calendar_past_full(calendar, slot if slot > calendar.base_slot else calendar.base_slot)
        calendar_reach(grid, calendar, now_ps, slot)
        if slot >= calendar.base_slot:      # a write may have waited since before what the calendar has just forgotten
            break
    word = slot >> 6
    open_slots = ~calendar.bits[word & (CALENDAR_WORDS - 1)] & (~<uint64_t>0 << (slot & 63))
    while not open_slots:
        word += 1
        calendar_reach(grid, calendar, now_ps, word << 6)
        open_slots = ~calendar.bits[word & (CALENDAR_WORDS - 1)]
    found = (word << 6) + count_trailing_zeros(open_slots)
    if found > slot:
        calendar_full(calendar, slot, found - slot)
    return found


cdef int64_t calendar_search(const SlotGrid* grid, Calendar* calendar, int64_t now_ps, int64_t slot, int slots, int64_t spacing,
                             int64_t* first) noexcept nogil:
    """`calendar_place`, slot after slot: where the few slots that it looks at do not suffice."""
    slot = first[0] = calendar_first_free(grid, calendar, now_ps, slot)
    calendar_take(calendar, slot)
    for _ in range(1, slots):
        slot = calendar_first_free(grid, calendar, now_ps, slot + spacing)
        calendar_take(calendar, slot)
    return slot


cdef bint in_refresh(const SlotGrid* grid, int64_t slot) noexcept nogil:
    """Does a refresh take this slot?"""
    cdef int64_t refresh
    if not grid.refresh_ps:
        return False
    refresh = ((slot + 1) * grid.slot_ps - 1) / grid.refresh_interval_ps * grid.refresh_interval_ps
    return refresh > 0 and slot < (refresh + grid.refresh_ps) / grid.slot_ps


cdef void calendar_release(const SlotGrid* grid, Calendar* calendar, int64_t slot) noexcept nogil:
    """Frees a slot, where no refresh takes it."""
    if calendar_holds(calendar, slot) and not in_refresh(grid, slot):
        calendar.bits[(slot >> 6) & (CALENDAR_WORDS - 1)] &= ~(<uint64_t>1 << (slot & 63))
        if calendar_past_full(calendar, slot) != slot:
            calendar.full_end = slot
            calendar.full_slots = slot - calendar.full_slot


cdef SlotGrid slot_grid(int64_t slot_ps, int64_t refresh_ps, int64_t refresh_interval_ps) noexcept:
    """Slots of `slot_ps`, at least 2."""
    return SlotGrid(slot_ps, ~<uint64_t>0 / <uint64_t>slot_ps + 1, refresh_ps, refresh_interval_ps)


cdef void calendar_init(const SlotGrid* grid, Calendar* calendar) noexcept:
    """An empty calendar in zeroed memory: nothing is taken but what refreshes take, the first of them after an interval."""
    calendar.last_slot = -1
    if grid.refresh_ps:
        calendar.next_refresh_ps = grid.refresh_interval_ps
        calendar_mark_refresh(grid, calendar, 0, CALENDAR_SLOTS)


cdef class BusCalendar:
    """The bus of one pseudo-channel without refresh, driven request by request: the reference model is in `tests/reference/replay/`.

    Parameters
    ----------
    burst_ps : length of a slot, at least 2
    ccd_slots : slots from a burst to the next one of a request, at most 56
    """

    cdef SlotGrid grid
    cdef Calendar calendar
    cdef int64_t ccd_slots

    def __cinit__(self, int64_t burst_ps, int64_t ccd_slots):
        self.grid, self.ccd_slots = slot_grid(burst_ps, 0, 0), ccd_slots
        calendar_init(&self.grid, &self.calendar)

    def place(self, int64_t now_ps, int64_t slot, int bursts):
        """Takes slots for a request's bursts, at or after `slot`, which is no earlier than `now_ps`; returns first and last."""
        cdef int64_t first, last
        last = calendar_place(&self.grid, &self.calendar, now_ps, slot, bursts, self.ccd_slots, &first)
        return first, last
