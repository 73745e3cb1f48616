"""Rare operations of a reservation table."""
from buddysim.replay.primitives.horizon cimport far_page, far_page_create, far_page_drop, trial_record

cdef enum:
    TABLE_SLOT_BITS = 14  # log2 of TABLE_SLOTS, the slots of the ring and of a page


cdef inline uint64_t* table_word(ReservationTable* table, int64_t slot) noexcept nogil:
    """The word of a slot of the ring."""
    return &table.bits[(slot >> 6) & (TABLE_WORDS - 1)]


cdef void mark_refresh_slots(const SlotGrid* grid, int64_t offset_ps, uint64_t* bits, int64_t first, int64_t end) noexcept nogil:
    """Reserves the slots of refreshes in [first, end), at most TABLE_SLOTS, in the words of the ring or of a page."""
    cdef int64_t slot, last, refresh_ps, first_ps = offset_ps if offset_ps else grid.refresh_interval_ps
    if not grid.refresh_ps:
        return
    refresh_ps = first * grid.slot_ps - grid.refresh_ps - offset_ps
    refresh_ps = refresh_ps / grid.refresh_interval_ps * grid.refresh_interval_ps + offset_ps
    refresh_ps = refresh_ps if refresh_ps > first_ps else first_ps
    while refresh_ps < end * grid.slot_ps:
        slot = refresh_ps / grid.slot_ps
        last = (refresh_ps + grid.refresh_ps) / grid.slot_ps
        for slot in range(max(slot, first), min(last, end)):
            bits[(slot >> 6) & (TABLE_WORDS - 1)] |= <uint64_t>1 << (slot & 63)
        refresh_ps += grid.refresh_interval_ps


cdef uint64_t* far_word(const SlotGrid* grid, ReservationTable* table, Horizon* horizon, int64_t slot) noexcept nogil:
    """The word of a slot beyond the ring; NULL if it cannot be recorded."""
    cdef int64_t page = slot >> TABLE_SLOT_BITS
    cdef uint64_t* words = far_page(horizon, table, page)
    if not words:
        words = far_page_create(horizon, table, page)
        if not words:
            return NULL
        table.far_pages += 1
        mark_refresh_slots(grid, table.refresh_offset_ps, words, page << TABLE_SLOT_BITS, page + 1 << TABLE_SLOT_BITS)
    return words + ((slot >> 6) & (TABLE_WORDS - 1))


cdef bint take_over_page(ReservationTable* table, Horizon* horizon, int64_t page, int64_t first, int64_t end) noexcept nogil:
    """Copies the words of a page in [first, end) into the ring, and drops the page if it ends there; False if there is none."""
    cdef const uint64_t* words = far_page(horizon, table, page) if table.far_pages else NULL
    cdef int64_t word
    if not words:
        return False
    for word in range(first >> 6, end >> 6):
        table.bits[word & (TABLE_WORDS - 1)] = words[word & (TABLE_WORDS - 1)]
    if end == page + 1 << TABLE_SLOT_BITS:
        far_page_drop(horizon, table, page)
        table.far_pages -= 1
    return True


cdef void advance_table(const SlotGrid* grid, ReservationTable* table, Horizon* horizon) noexcept nogil:
    """Moves the ring to begin at the current event."""
    cdef int64_t base_slot = slot_at(grid, horizon.now_ps) & ~<int64_t>63
    cdef int64_t before = table.base_slot + TABLE_SLOTS, first, end, word
    if base_slot <= table.base_slot:
        return
    table.base_slot = base_slot
    first = before
    if base_slot > before:
        while table.far_pages and first < base_slot:      # pages that are past
            end = (first >> TABLE_SLOT_BITS) + 1 << TABLE_SLOT_BITS
            take_over_page(table, horizon, first >> TABLE_SLOT_BITS, first, min(end, base_slot))
            first = end
        first = base_slot
    while first < base_slot + TABLE_SLOTS:
        end = min((first >> TABLE_SLOT_BITS) + 1 << TABLE_SLOT_BITS, base_slot + TABLE_SLOTS)
        if not take_over_page(table, horizon, first >> TABLE_SLOT_BITS, first, end):
            for word in range(first >> 6, end >> 6):
                table.bits[word & (TABLE_WORDS - 1)] = 0
            mark_refresh_slots(grid, table.refresh_offset_ps, table.bits, first, end)
        first = end


cdef uint64_t* word_of(const SlotGrid* grid, ReservationTable* table, Horizon* horizon, int64_t slot) noexcept nogil:
    """The word of a slot that is not past; NULL if it cannot be recorded."""
    if slot < table.base_slot + TABLE_SLOTS:
        return table_word(table, slot)
    return far_word(grid, table, horizon, slot)


cdef void reserve_slot(const SlotGrid* grid, ReservationTable* table, Horizon* horizon, int64_t slot) noexcept nogil:
    cdef uint64_t* word
    if slot >= table.base_slot:
        word = word_of(grid, table, horizon, slot)
        if word:
            trial_record(horizon, word)
            word[0] |= <uint64_t>1 << (slot & 63)
    table.last_slot = slot if slot > table.last_slot else table.last_slot


cdef inline void record_full_run(const SlotGrid* grid, ReservationTable* table, const Horizon* horizon, int64_t slot,
                                 int64_t end) noexcept nogil:
    """Records that the slots in [slot, end) are reserved: extends the known run, or replaces a shorter or past one."""
    if table.full_slot <= slot <= table.full_end:
        slot = table.full_slot
    elif end - slot <= table.full_slots and table.full_end > slot_at(grid, horizon.now_ps):
        return
    table.full_slot, table.full_end, table.full_slots = slot, end, end - slot


cdef int64_t first_free_slot(const SlotGrid* grid, ReservationTable* table, Horizon* horizon, int64_t slot) noexcept nogil:
    """The first free slot, from `slot` on."""
    cdef int64_t begin = slot, free_slot, word
    cdef uint64_t* bits
    cdef uint64_t open_slots
    slot = skip_full_run(table, slot)
    if slot >= table.base_slot + TABLE_SLOTS:
        advance_table(grid, table, horizon)
    word = slot >> 6
    bits = word_of(grid, table, horizon, slot)
    open_slots = ~(bits[0] if bits else 0) & (~<uint64_t>0 << (slot & 63))
    while not open_slots:
        word += 1
        slot = skip_full_run(table, word << 6)
        word = slot >> 6
        bits = word_of(grid, table, horizon, slot)
        open_slots = ~(bits[0] if bits else 0) & (~<uint64_t>0 << (slot & 63))
    free_slot = (word << 6) + count_trailing_zeros(open_slots)
    if free_slot > begin:
        record_full_run(grid, table, horizon, begin, free_slot)
    return free_slot


cdef int64_t search_slots(const SlotGrid* grid, ReservationTable* table, Horizon* horizon, int64_t slot, int slots, int64_t spacing,
                          int64_t* first) noexcept nogil:
    """`reserve_slots`, slot after slot; for requests that do not fit in the slots that it examines."""
    slot = first[0] = first_free_slot(grid, table, horizon, slot)
    reserve_slot(grid, table, horizon, slot)
    for _ in range(1, slots):
        slot = first_free_slot(grid, table, horizon, slot + spacing)
        reserve_slot(grid, table, horizon, slot)
    return slot


cdef bint is_refresh_slot(const SlotGrid* grid, int64_t offset_ps, int64_t slot) noexcept nogil:
    """Whether a refresh reserves a slot."""
    cdef int64_t refresh = (slot + 1) * grid.slot_ps - 1 - offset_ps
    if not grid.refresh_ps or refresh < 0:
        return False
    refresh = refresh / grid.refresh_interval_ps * grid.refresh_interval_ps + offset_ps
    return refresh > 0 and slot < (refresh + grid.refresh_ps) / grid.slot_ps


cdef void release_slot(const SlotGrid* grid, ReservationTable* table, Horizon* horizon, int64_t slot) noexcept nogil:
    """Releases a slot, unless it is past or a refresh reserves it."""
    cdef uint64_t* word
    if slot >= table.base_slot and not is_refresh_slot(grid, table.refresh_offset_ps, slot):
        word = word_of(grid, table, horizon, slot)
        if word:
            word[0] &= ~(<uint64_t>1 << (slot & 63))
        if skip_full_run(table, slot) != slot:
            table.full_end = slot
            table.full_slots = slot - table.full_slot


cdef SlotGrid slot_grid(int64_t slot_ps, int64_t refresh_ps, int64_t refresh_interval_ps) noexcept:
    """Slots of `slot_ps`, at least 2."""
    return SlotGrid(slot_ps, ~<uint64_t>0 / <uint64_t>slot_ps + 1, refresh_ps, refresh_interval_ps)


cdef void table_init(const SlotGrid* grid, ReservationTable* table, int64_t refresh_offset_ps) noexcept:
    """Initializes a table in zeroed memory: only refreshes are reserved, one per interval from its offset on, none at 0."""
    table.last_slot, table.refresh_offset_ps = -1, refresh_offset_ps
    mark_refresh_slots(grid, refresh_offset_ps, table.bits, 0, TABLE_SLOTS)
