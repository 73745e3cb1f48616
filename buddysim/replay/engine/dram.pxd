"""Device memory: channels of pseudo-channels, at two fidelities behind `dram_read` and `dram_write`.

`simple`: each pseudo-channel has a bandwidth and a latency, nothing else.

`banked`: each pseudo-channel has a calendar of its data bus in slots of one burst (32 B), in which every burst takes a slot of its
own, so the bus can never carry more than its peak. A request finds its earliest slot from its bank's state: open row, tRCD, tRP,
tRAS, tRC, tCCD, and the rate at which rows may be activated (tRRD, tFAW). Requests are placed when they arrive, not in a cycle by
cycle queue; what a first-ready scheduler would reorder follows from the calendar (a later request to a ready bank takes an earlier
free slot) and from joined rows (a request for a row that the bank has scheduled but not yet left counts as a row hit).
Writes wait in a queue and are drained together behind the reads, with the bus turned around once.
Refresh takes the bus for tRFC every tREFI and closes the rows.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from buddysim.replay.engine.division cimport high_product
from buddysim.replay.engine.hints cimport likely, prefetch, unlikely
from buddysim.replay.engine.arena cimport Arena
from buddysim.replay.engine.port cimport Port, port_pass

cdef extern from *:
    int count_trailing_zeros "__builtin_ctzll"(unsigned long long x) noexcept nogil

cdef extern from "calendar.h" nogil:
    const int CALENDAR_WINDOW
    uint64_t bits_from(const uint64_t* string, uint64_t bit) noexcept
    void add_bits(uint64_t* string, uint64_t bit, uint64_t bits) noexcept

cdef enum:
    CALENDAR_WORDS = 256
    CALENDAR_SLOTS = 64 * CALENDAR_WORDS        # 16,384 bursts, 37 us at 14 GB/s
    WRITE_QUEUE_LIMIT = 128

cdef struct DramTiming:         # all in ps
    int64_t rcd
    int64_t rp
    int64_t cl
    int64_t cwl
    int64_t ras
    int64_t ccd_slots           # tCCD_L in bursts
    int64_t act_interval        # the larger of tRRD and tFAW / 4
    int64_t wr
    int64_t read_to_write       # idle bus between read data and write data
    int64_t write_to_read       # idle bus between write data and read data
    int64_t rtp
    int64_t rfc
    int64_t refi

cdef struct Bank:               # one cache line of the CPU
    int64_t row                 # open row, -1: closed
    int64_t col_ps              # earliest next column command
    int64_t pre_ps              # earliest precharge
    int64_t act_ps              # earliest activation when closed
    int64_t activated_ps        # when the open row was activated
    int64_t left_row            # the row that was open before
    int64_t left_ps             # when it was left
    int64_t reserved

cdef struct QueuedWrite:
    int64_t row
    int64_t arrival_ps
    Bank* bank
    int bursts

cdef struct PseudoChannel:      # the CPU's first cache line of it is what every access needs
    int64_t base_slot           # the oldest slot of the calendar
    int64_t full_slot           # from this slot of the calendar on
    int64_t full_slots          # so many are taken
    int64_t last_slot           # the latest slot taken: the next one is likely near it
    int64_t act_free_ps         # activation rate: the next one is free of earlier ones from here
    int64_t bursts              # bursts carried
    int64_t row_misses
    int64_t row_hits
    int64_t drain_ps            # when the last drain of the write queue began: its entries come free from here
    int64_t drained_ps          # when it ended
    int64_t turning_slot        # the first slot that turning the bus back for reads took
    int64_t turned_slot         # the last one
    int64_t next_refresh_ps
    int64_t queued_bursts
    int64_t n_queued
    QueuedWrite* queue          # [WRITE_QUEUE_LIMIT]
    Port* bus                   # simple
    int64_t[7] reserved
    uint64_t[256] calendar      # bit = slot taken; slot s is bit s % 64 of word (s / 64) % CALENDAR_WORDS

cdef struct DeviceLocation:        # where something lies
    PseudoChannel* channel
    Bank* bank
    int64_t row

cdef struct Dram:
    int banked
    int n_pseudo                # pseudo-channels in all
    uint32_t n_banks            # per pseudo-channel, a power of two
    int bank_bits               # its log2
    int write_queue             # bursts that start a drain
    int64_t now_ps              # the time of the event at hand: no request comes earlier than this any more
    uint64_t slots_per_ps       # 2^64 / burst_ps, rounded up
    int64_t burst_ps            # one 32 B burst, also the length of a slot
    int64_t before_ps           # fixed time from the L2 slice to the first command
    int64_t after_ps            # fixed time from the end of the data to the L2 slice
    int64_t simple_ps           # simple: command to the end of the first burst
    int64_t burst_cost          # simple: one burst through the bus
    int64_t refreshed_ps        # start of the refresh interval of the last request
    int64_t joined_ps           # a burst of a request to a row that was left, until the bank's next column command
    int64_t next_col_ps         # from the end of a read's data to the bank's next column command: negative
    int64_t read_to_pre_ps      # from the end of a read's data to the precharge: negative
    DramTiming timing
    PseudoChannel* pseudo       # [n_pseudo]
    Bank* banks                 # [n_pseudo][n_banks]


cdef int64_t dram_would_read(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil
cdef int64_t calendar_search(Dram* dram, PseudoChannel* channel, int64_t slot, int bursts, int64_t* first) noexcept nogil
cdef void calendar_forget(Dram* dram, PseudoChannel* channel) noexcept nogil
cdef void banked_drain(Dram* dram, PseudoChannel* channel, int64_t t) noexcept nogil


cdef inline int64_t larger(int64_t a, int64_t b) noexcept nogil:
    return a if a > b else b


cdef inline int64_t slot_at(const Dram* dram, int64_t t) noexcept nogil:
    """The slot that holds `t`: t / burst_ps, exact for t < 2^64 / burst_ps (two hours, for bursts of 2.3 ns)."""
    return <int64_t>high_product(<uint64_t>t, dram.slots_per_ps)


cdef inline int64_t calendar_past_full(const PseudoChannel* channel, int64_t slot) noexcept nogil:
    """`slot`, or the first one after the slots known to be taken, where it is one of them."""
    return channel.full_slot + channel.full_slots if <uint64_t>(slot - channel.full_slot) < <uint64_t>channel.full_slots else slot


cdef inline void calendar_full(PseudoChannel* channel, int64_t slot, int64_t slots) noexcept nogil:
    """Remembers that so many slots from `slot` on are taken; of such runs the latest is kept."""
    if slot != channel.full_slot + channel.full_slots:
        channel.full_slot = slot
        channel.full_slots = 0
    channel.full_slots += slots


cdef inline int64_t calendar_place(Dram* dram, PseudoChannel* channel, int64_t slot, int bursts, int64_t* first) noexcept nogil:
    """Takes the first free slots for bursts, the first at or after `slot`, each tCCD_L after the one before; returns the last."""
    cdef uint64_t open_slots, latest, taken     # bit i: slot + i
    cdef uint64_t bit
    cdef int64_t begin
    begin = slot = calendar_past_full(channel, slot)
    while True:
        bit = slot & (CALENDAR_SLOTS - 1)
        if unlikely(bit > CALENDAR_SLOTS - 64 or <uint64_t>(slot - channel.base_slot) >= CALENDAR_SLOTS - 64):
            return calendar_search(dram, channel, begin, bursts, first)
        open_slots = ~bits_from(channel.calendar, bit) & ((<uint64_t>1 << CALENDAR_WINDOW) - 1)
        if likely(open_slots):
            break
        calendar_full(channel, slot, CALENDAR_WINDOW)
        slot += CALENDAR_WINDOW
    first[0] = slot + count_trailing_zeros(open_slots)
    taken = latest = open_slots & -open_slots
    for _ in range(1, bursts):
        open_slots &= -(latest << dram.timing.ccd_slots)
        if unlikely(not open_slots):
            return calendar_search(dram, channel, begin, bursts, first)
        latest = open_slots & -open_slots
        taken |= latest
    add_bits(channel.calendar, bit, taken)
    slot += count_trailing_zeros(latest)
    channel.last_slot = larger(channel.last_slot, slot)
    return slot


cdef inline int64_t last_refresh(Dram* dram, int64_t t) noexcept nogil:
    """When the refresh interval that holds `t` began; all channels refresh together."""
    cdef int64_t began = dram.refreshed_ps
    if unlikely(<uint64_t>(t - began) >= <uint64_t>dram.timing.refi):
        if t < began and began - t <= dram.timing.refi:         # some requests are still in the interval before
            return began - dram.timing.refi
        began = dram.refreshed_ps = t - t % dram.timing.refi
    return began


cdef inline int64_t bank_open(Dram* dram, PseudoChannel* channel, Bank* bank, int64_t row, int64_t t) noexcept nogil:
    """Brings `row` to the bank's row buffer for a request that arrives at `t`; returns its first column command's time."""
    cdef DramTiming* timing = &dram.timing
    cdef int64_t act
    act = last_refresh(dram, t)
    if unlikely(bank.activated_ps < act) and bank.row >= 0:
        bank.row = -1
        bank.act_ps = larger(bank.act_ps, act + timing.rfc)
    # Whether the row is open or was left a moment ago is hard for a CPU to predict: one branch for both.
    if (bank.row == row) | ((bank.left_row == row) & (t < bank.left_ps)):
        channel.row_hits += 1
        return larger(t, bank.col_ps if bank.row == row else t)
    channel.row_misses += 1
    if bank.row >= 0:
        bank.left_row = bank.row
        bank.left_ps = larger(t, bank.pre_ps)
        act = bank.left_ps + timing.rp
    else:
        act = larger(t, bank.act_ps)
    act = larger(act, larger(channel.act_free_ps, dram.now_ps) + t - dram.now_ps)
    channel.act_free_ps = larger(channel.act_free_ps, dram.now_ps) + timing.act_interval
    bank.row = row
    bank.activated_ps = act
    bank.col_ps = act + timing.rcd
    bank.pre_ps = act + timing.ras
    return bank.col_ps


cdef inline void dram_location(const Dram* dram, uint32_t bank, int64_t row, DeviceLocation* location) noexcept nogil:
    """The location of a row in a bank (numbered over all banks)."""
    location.channel = dram.pseudo + (bank >> dram.bank_bits)
    location.bank = dram.banks + bank
    location.row = row


cdef inline void dram_prefetch(const DeviceLocation* location) noexcept nogil:
    """Prefetches what a read will need into the CPU's cache."""
    prefetch(location.bank)
    prefetch(&location.channel.calendar[(location.channel.last_slot >> 6) & (CALENDAR_WORDS - 1)])


cdef inline int64_t banked_read(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    cdef PseudoChannel* channel = location.channel
    cdef Bank* bank = location.bank
    cdef int64_t data, last, first, done
    cdef bint joined
    data = bank_open(dram, channel, bank, location.row, t) + dram.timing.cl
    joined = bank.row != location.row
    last = calendar_place(dram, channel, slot_at(dram, data), bursts, &first)
    done = larger(data, first * dram.burst_ps) + (last - first + 1) * dram.burst_ps
    # Where it was joined, the row now open gives way for as long as the joined bursts took.
    bank.col_ps = bank.col_ps + bursts * dram.joined_ps if joined else done + dram.next_col_ps
    bank.pre_ps = larger(bank.pre_ps, done + dram.read_to_pre_ps)
    channel.bursts += bursts
    return done


cdef inline int64_t dram_read(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    """When the last of `bursts` bursts of 32 B from one row is back at the L2; the request leaves it at `t`."""
    t += dram.before_ps
    if dram.banked:
        return banked_read(dram, location, bursts, t) + dram.after_ps
    location.channel.bursts += bursts
    t = port_pass(location.channel.bus, &dram.now_ps, t, bursts * dram.burst_cost)
    return t + dram.simple_ps + (bursts - 1) * dram.burst_ps + dram.after_ps


cdef inline int64_t dram_idle_ps(const Dram* dram, int bursts) noexcept nogil:
    """What `dram_read` takes at the least: an open row, an idle bus."""
    if dram.banked:
        return dram.before_ps + dram.timing.cl + ((bursts - 1) * dram.timing.ccd_slots + 1) * dram.burst_ps + dram.after_ps
    return dram.before_ps + dram.simple_ps + (bursts - 1) * dram.burst_ps + dram.after_ps


cdef inline int64_t dram_write(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    """Posts a write of `bursts` bursts to one row; it leaves the L2 at `t`. Returns when the channel takes it."""
    cdef PseudoChannel* channel = location.channel
    cdef int64_t taken
    if not dram.banked:
        channel.bursts += bursts
        return port_pass(channel.bus, &dram.now_ps, t + dram.before_ps, bursts * dram.burst_cost) - dram.before_ps
    taken = larger(t, channel.drain_ps)
    channel.queue[channel.n_queued] = QueuedWrite(
        location.row, taken + dram.before_ps, location.bank, bursts)
    channel.n_queued += 1
    channel.queued_bursts += bursts
    if channel.queued_bursts >= dram.write_queue or channel.n_queued == WRITE_QUEUE_LIMIT:
        calendar_forget(dram, channel)
        banked_drain(dram, channel, taken + dram.before_ps)
    return taken


cdef int dram_init(Arena* arena, Dram* dram) except -1
cdef int dram_set_up(Arena* arena, Dram* dram, dict n) except -1
