"""Rare operations of a reservation table, and a class for tests that compare it with its reference model."""
from libc.stdint cimport int64_t, uint64_t


cdef void mark_refresh_slots(const SlotGrid* grid, ReservationTable* table, int64_t first, int64_t end) noexcept nogil:
    """Reserves the slots of refreshes in [first, end); the next call continues a refresh that crosses the end."""
    cdef int64_t slot, last, past = first * grid.slot_ps - grid.refresh_ps - table.next_refresh_ps
    if past > 0:                                    # refreshes that end before the first slot
        table.next_refresh_ps += past / grid.refresh_interval_ps * grid.refresh_interval_ps
    while table.next_refresh_ps < end * grid.slot_ps:
        slot = table.next_refresh_ps / grid.slot_ps
        slot = slot if slot > first else first
        last = (table.next_refresh_ps + grid.refresh_ps) / grid.slot_ps
        while slot < last and slot < end:
            table.bits[(slot >> 6) & (TABLE_WORDS - 1)] |= <uint64_t>1 << (slot & 63)
            slot += 1
        if last > end:
            return
        table.next_refresh_ps += grid.refresh_interval_ps


cdef void move_base_slot(const SlotGrid* grid, ReservationTable* table, int64_t base_slot) noexcept nogil:
    """Moves the table to begin at `base_slot`, the first of a word; reserves the refreshes among the new slots."""
    cdef int64_t word, first_new = table.base_slot + TABLE_SLOTS
    if base_slot >= first_new:
        for word in range(TABLE_WORDS):
            table.bits[word] = 0
        first_new = base_slot
    else:
        for word in range(table.base_slot >> 6, base_slot >> 6):
            table.bits[word & (TABLE_WORDS - 1)] = 0
    table.base_slot = base_slot
    if grid.refresh_ps:
        mark_refresh_slots(grid, table, first_new, base_slot + TABLE_SLOTS)


cdef void reserve_slot(ReservationTable* table, int64_t slot) noexcept nogil:
    table.bits[(slot >> 6) & (TABLE_WORDS - 1)] |= <uint64_t>1 << (slot & 63)
    table.last_slot = slot if slot > table.last_slot else table.last_slot


cdef void advance_table(const SlotGrid* grid, ReservationTable* table, int64_t now_ps) noexcept nogil:
    """Moves the table to begin at `now_ps`; no request will arrive earlier."""
    cdef int64_t base_slot = slot_at(grid, now_ps) & ~<int64_t>63
    if base_slot > table.base_slot:
        move_base_slot(grid, table, base_slot)


cdef bint table_covers(const ReservationTable* table, int64_t slot) noexcept nogil:
    return table.base_slot <= slot < table.base_slot + TABLE_SLOTS


cdef void extend_to_slot(const SlotGrid* grid, ReservationTable* table, int64_t now_ps, int64_t slot) noexcept nogil:
    """Moves the table, if necessary, so that `slot` lies before its end."""
    if slot >= table.base_slot + TABLE_SLOTS:
        advance_table(grid, table, now_ps)
    if slot >= table.base_slot + TABLE_SLOTS:
        move_base_slot(grid, table, (slot & ~<int64_t>63) - (TABLE_SLOTS - 64))


cdef int64_t first_free_slot(const SlotGrid* grid, ReservationTable* table, int64_t now_ps, int64_t slot) noexcept nogil:
    """The first free slot, from `slot` on; moves the table if that slot lies beyond its end."""
    cdef int64_t free_slot, word
    cdef uint64_t open_slots
    while True:
        slot = skip_full_run(table, slot if slot > table.base_slot else table.base_slot)
        extend_to_slot(grid, table, now_ps, slot)
        if slot >= table.base_slot:      # a write may have waited since before the new begin of the table
            break
    word = slot >> 6
    open_slots = ~table.bits[word & (TABLE_WORDS - 1)] & (~<uint64_t>0 << (slot & 63))
    while not open_slots:
        word += 1
        extend_to_slot(grid, table, now_ps, word << 6)
        open_slots = ~table.bits[word & (TABLE_WORDS - 1)]
    free_slot = (word << 6) + count_trailing_zeros(open_slots)
    if free_slot > slot:
        extend_full_run(table, slot, free_slot - slot)
    return free_slot


cdef int64_t search_slots(const SlotGrid* grid, ReservationTable* table, int64_t now_ps, int64_t slot, int slots, int64_t spacing,
                          int64_t* first) noexcept nogil:
    """`reserve_slots`, slot after slot; for requests that do not fit in the slots that it examines."""
    slot = first[0] = first_free_slot(grid, table, now_ps, slot)
    reserve_slot(table, slot)
    for _ in range(1, slots):
        slot = first_free_slot(grid, table, now_ps, slot + spacing)
        reserve_slot(table, slot)
    return slot


cdef bint is_refresh_slot(const SlotGrid* grid, int64_t slot) noexcept nogil:
    """Whether a refresh reserves a slot."""
    cdef int64_t refresh
    if not grid.refresh_ps:
        return False
    refresh = ((slot + 1) * grid.slot_ps - 1) / grid.refresh_interval_ps * grid.refresh_interval_ps
    return refresh > 0 and slot < (refresh + grid.refresh_ps) / grid.slot_ps


cdef void release_slot(const SlotGrid* grid, ReservationTable* table, int64_t slot) noexcept nogil:
    """Releases a slot, unless a refresh reserves it."""
    if table_covers(table, slot) and not is_refresh_slot(grid, slot):
        table.bits[(slot >> 6) & (TABLE_WORDS - 1)] &= ~(<uint64_t>1 << (slot & 63))
        if skip_full_run(table, slot) != slot:
            table.full_end = slot
            table.full_slots = slot - table.full_slot


cdef SlotGrid slot_grid(int64_t slot_ps, int64_t refresh_ps, int64_t refresh_interval_ps) noexcept:
    """Slots of `slot_ps`, at least 2."""
    return SlotGrid(slot_ps, ~<uint64_t>0 / <uint64_t>slot_ps + 1, refresh_ps, refresh_interval_ps)


cdef void table_init(const SlotGrid* grid, ReservationTable* table) noexcept:
    """Initializes a table in zeroed memory: only refreshes are reserved, the first one after an interval."""
    table.last_slot = -1
    if grid.refresh_ps:
        table.next_refresh_ps = grid.refresh_interval_ps
        mark_refresh_slots(grid, table, 0, TABLE_SLOTS)


cdef class BusReservations:
    """The bus of one pseudo-channel without refresh, for tests; its reference model is in `tests/reference/replay/engine/`.

    Parameters
    ----------
    burst_ps : length of a slot, at least 2
    ccd_slots : slots between two bursts of a request, at most 56
    """

    cdef SlotGrid grid
    cdef ReservationTable table
    cdef int64_t ccd_slots

    def __cinit__(self, int64_t burst_ps, int64_t ccd_slots):
        self.grid, self.ccd_slots = slot_grid(burst_ps, 0, 0), ccd_slots
        table_init(&self.grid, &self.table)

    def reserve(self, int64_t now_ps, int64_t slot, int bursts):
        """Reserves slots for the bursts of a request, from `slot` on (not before `now_ps`); returns the first and the last."""
        cdef int64_t first, last
        last = reserve_slots(&self.grid, &self.table, now_ps, slot, bursts, self.ccd_slots, &first)
        return first, last
