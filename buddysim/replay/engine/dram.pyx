"""Set-up of a `Dram`, what its channels rarely do, and a class over a bus calendar that tests compare with its twin."""
from libc.stdint cimport uint64_t

from buddysim.replay.engine.arena cimport Arena, arena_free, arena_zeroed
from buddysim.replay.engine.port cimport Port

cdef void calendar_mark_refresh(Dram* dram, PseudoChannel* channel, int64_t first, int64_t end) noexcept nogil:
    """Takes the slots in [first, end) that refreshes need; one that runs over the end goes on at the next call."""
    cdef int64_t slot, last, past = first * dram.burst_ps - dram.timing.rfc - channel.next_refresh_ps
    if past > 0:                                    # those that end before the first slot
        channel.next_refresh_ps += past / dram.timing.refi * dram.timing.refi
    while channel.next_refresh_ps < end * dram.burst_ps:
        slot = larger(channel.next_refresh_ps / dram.burst_ps, first)
        last = (channel.next_refresh_ps + dram.timing.rfc) / dram.burst_ps
        while slot < last and slot < end:
            channel.calendar[(slot >> 6) & (CALENDAR_WORDS - 1)] |= <uint64_t>1 << (slot & 63)
            slot += 1
        if last > end:
            return
        channel.next_refresh_ps += dram.timing.refi


cdef void calendar_advance(Dram* dram, PseudoChannel* channel, int64_t base_slot) noexcept nogil:
    """Forgets the calendar before `base_slot` (of a word, the first); the space becomes its far end, its refreshes marked."""
    cdef int64_t word, first_new = channel.base_slot + CALENDAR_SLOTS
    if base_slot >= first_new:
        for word in range(CALENDAR_WORDS):
            channel.calendar[word] = 0
        first_new = base_slot
    else:
        for word in range(channel.base_slot >> 6, base_slot >> 6):
            channel.calendar[word & (CALENDAR_WORDS - 1)] = 0
    channel.base_slot = base_slot
    if dram.timing.rfc:
        calendar_mark_refresh(dram, channel, first_new, base_slot + CALENDAR_SLOTS)


cdef void calendar_take(PseudoChannel* channel, int64_t slot) noexcept nogil:
    channel.calendar[(slot >> 6) & (CALENDAR_WORDS - 1)] |= <uint64_t>1 << (slot & 63)
    channel.last_slot = larger(channel.last_slot, slot)


cdef void calendar_forget(Dram* dram, PseudoChannel* channel) noexcept nogil:
    """Nothing will be asked of the channel before `dram.now_ps`: the calendar need not go further back."""
    cdef int64_t base_slot = slot_at(dram, dram.now_ps) & ~<int64_t>63
    if base_slot > channel.base_slot:
        calendar_advance(dram, channel, base_slot)


cdef bint calendar_holds(const PseudoChannel* channel, int64_t slot) noexcept nogil:
    return channel.base_slot <= slot < channel.base_slot + CALENDAR_SLOTS


cdef void calendar_reach(Dram* dram, PseudoChannel* channel, int64_t slot) noexcept nogil:
    """Moves the calendar on, where need be, until it holds `slot` or one before it."""
    if slot >= channel.base_slot + CALENDAR_SLOTS:
        calendar_forget(dram, channel)
    if slot >= channel.base_slot + CALENDAR_SLOTS:
        calendar_advance(dram, channel, (slot & ~<int64_t>63) - (CALENDAR_SLOTS - 64))


cdef int64_t calendar_first_free(Dram* dram, PseudoChannel* channel, int64_t slot) noexcept nogil:
    """The first free slot at or after `slot`; the calendar moves on where that lies beyond its end."""
    cdef int64_t found, word
    cdef uint64_t open_slots
    slot = calendar_past_full(channel, larger(slot, channel.base_slot))
    calendar_reach(dram, channel, slot)
    word = slot >> 6
    open_slots = ~channel.calendar[word & (CALENDAR_WORDS - 1)] & (~<uint64_t>0 << (slot & 63))
    while not open_slots:
        word += 1
        calendar_reach(dram, channel, word << 6)
        open_slots = ~channel.calendar[word & (CALENDAR_WORDS - 1)]
    found = (word << 6) + count_trailing_zeros(open_slots)
    if found > slot:
        calendar_full(channel, slot, found - slot)
    return found


cdef int64_t calendar_search(Dram* dram, PseudoChannel* channel, int64_t slot, int bursts, int64_t* first) noexcept nogil:
    """`calendar_place`, slot after slot: where the few slots that it looks at do not suffice."""
    slot = first[0] = calendar_first_free(dram, channel, slot)
    calendar_take(channel, slot)
    for _ in range(1, bursts):
        slot = calendar_first_free(dram, channel, slot + dram.timing.ccd_slots)
        calendar_take(channel, slot)
    return slot


cdef void calendar_release(PseudoChannel* channel, int64_t slot) noexcept nogil:
    if calendar_holds(channel, slot):
        channel.calendar[(slot >> 6) & (CALENDAR_WORDS - 1)] &= ~(<uint64_t>1 << (slot & 63))
        if calendar_past_full(channel, slot) != slot:
            channel.full_slots = slot - channel.full_slot


cdef void banked_drain(Dram* dram, PseudoChannel* channel, int64_t t) noexcept nogil:
    """Writes everything queued in a pseudo-channel, behind the reads that are scheduled."""
    cdef QueuedWrite* queue = channel.queue
    cdef QueuedWrite write
    cdef DramTiming* timing = &dram.timing
    cdef Bank* bank
    cdef int i, j
    cdef int64_t col, slot, first, start, end
    for i in range(1, channel.n_queued):        # by bank and row, so that a row is opened once
        write = queue[i]
        j = i
        while j > 0 and (queue[j - 1].bank > write.bank
                         or (queue[j - 1].bank == write.bank and queue[j - 1].row > write.row)):
            queue[j] = queue[j - 1]
            j -= 1
        queue[j] = write
    if channel.last_slot == channel.turned_slot:        # no read has come since the last drain: the bus need not have turned back
        for slot in range(channel.turning_slot, channel.turned_slot + 1):
            calendar_release(channel, slot)
        channel.last_slot = channel.turning_slot - 1
        first = start = slot_at(dram, larger(t, channel.drain_ps))
    else:
        first = larger(slot_at(dram, t), channel.last_slot + 1)
        start = first + (timing.read_to_write + dram.burst_ps - 1) / dram.burst_ps
    end = start
    for i in range(channel.n_queued):
        bank = queue[i].bank
        # While one batch drains, the rows of the next are opened.
        col = bank_open(dram, channel, bank, queue[i].row, queue[i].arrival_ps if queue[i].arrival_ps < channel.drained_ps else t)
        slot = larger(start, slot_at(dram, col + timing.cwl))
        for _ in range(queue[i].bursts):
            slot = calendar_first_free(dram, channel, slot)
            calendar_take(channel, slot)
            end = larger(end, slot + 1)
            slot += timing.ccd_slots
        bank.col_ps = larger(bank.col_ps, slot * dram.burst_ps - timing.cwl)
        bank.pre_ps = larger(bank.pre_ps, (slot - timing.ccd_slots + 1) * dram.burst_ps + timing.wr)
        channel.bursts += queue[i].bursts
    channel.drain_ps = larger(first, end - channel.queued_bursts) * dram.burst_ps
    channel.drained_ps = end * dram.burst_ps
    for slot in range(first, start):
        if calendar_holds(channel, slot):
            calendar_take(channel, slot)
    channel.turning_slot = first = end
    end += (timing.write_to_read + dram.burst_ps - 1) / dram.burst_ps
    for slot in range(first, end):
        if calendar_holds(channel, slot):
            calendar_take(channel, slot)
    channel.turned_slot = channel.last_slot
    channel.n_queued = 0
    channel.queued_bursts = 0


cdef int64_t dram_would_read(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    """What `dram_read` would return: carried out on a copy of the channel and the bank."""
    cdef PseudoChannel channel = location.channel[0]
    cdef Bank bank = location.bank[0]
    cdef Port bus = location.channel.bus[0]
    cdef DeviceLocation copy = DeviceLocation(&channel, &bank, location.row)
    channel.bus = &bus
    return dram_read(dram, &copy, bursts, t)


cdef int dram_init(Arena* arena, Dram* dram) except -1:
    """Allocates the channels of a `Dram` whose numbers are set: all rows closed, the bus free, refresh due after tREFI."""
    cdef int i
    dram.bank_bits = count_trailing_zeros(dram.n_banks)
    dram.joined_ps = dram.timing.ccd_slots * dram.burst_ps
    dram.next_col_ps = dram.joined_ps - dram.burst_ps - dram.timing.cl
    dram.read_to_pre_ps = dram.timing.rtp - dram.burst_ps - dram.timing.cl
    if not dram.timing.rfc:
        dram.timing.refi = <int64_t>1 << 62     # never
    dram.slots_per_ps = ~<uint64_t>0 / <uint64_t>dram.burst_ps + 1
    dram.pseudo = <PseudoChannel*>arena_zeroed(arena, dram.n_pseudo, sizeof(PseudoChannel))
    dram.banks = <Bank*>arena_zeroed(arena, <size_t>dram.n_pseudo * dram.n_banks, sizeof(Bank))
    for i in range(dram.n_pseudo * <int>dram.n_banks):
        dram.banks[i].row = dram.banks[i].left_row = -1
    for i in range(dram.n_pseudo):
        dram.pseudo[i].queue = <QueuedWrite*>arena_zeroed(arena, WRITE_QUEUE_LIMIT, sizeof(QueuedWrite))
        dram.pseudo[i].bus = <Port*>arena_zeroed(arena, 1, sizeof(Port))
        dram.pseudo[i].last_slot, dram.pseudo[i].turned_slot = -1, -2
        if dram.timing.rfc:
            dram.pseudo[i].next_refresh_ps = dram.timing.refi
            calendar_mark_refresh(dram, &dram.pseudo[i], 0, CALENDAR_SLOTS)
    return 0


cdef int dram_set_up(Arena* arena, Dram* dram, dict n) except -1:
    """Device memory of a machine (`parameters.engine_numbers`)."""
    dram.banked, dram.n_pseudo = n["dram_banked"], n["dram_pseudo"]
    dram.n_banks, dram.write_queue = n["dram_banks"], n["dram_write_queue"]
    dram.burst_ps, dram.before_ps = n["dram_burst_ps"], n["dram_before_ps"]
    dram.after_ps, dram.simple_ps = n["dram_after_ps"], n["dram_simple_ps"]
    dram.burst_cost = n["dram_burst_cost"]
    dram.timing = n["dram_timing"]
    return dram_init(arena, dram)


cdef class BusCalendar:
    """The bus of one pseudo-channel without refresh, driven request by request: the twin is `twins.calendar`.

    Parameters
    ----------
    burst_ps : length of a slot, at least 2
    ccd_slots : slots from a burst to the next one of a request, at most 56
    """

    cdef Arena arena
    cdef Dram dram

    def __cinit__(self, int64_t burst_ps, int64_t ccd_slots):
        self.dram.banked = self.dram.n_pseudo = self.dram.n_banks = 1
        self.dram.burst_ps, self.dram.timing.ccd_slots = burst_ps, ccd_slots
        dram_init(&self.arena, &self.dram)

    def __dealloc__(self):
        arena_free(&self.arena)

    def place(self, int64_t now_ps, int64_t slot, int bursts):
        """Takes slots for a request's bursts, at or after `slot`, which is no earlier than `now_ps`; returns first and last."""
        cdef PseudoChannel* channel = self.dram.pseudo
        cdef int64_t first, last
        self.dram.now_ps = now_ps
        last = calendar_place(&self.dram, channel, slot, bursts, &first)
        return first, last
