"""Set-up of a `Dram`, and its write queues."""
from buddysim.replay.engine.arena cimport Arena, arena_zeroed
from buddysim.replay.engine.reservation_table cimport (
    calendar_first_free, calendar_forget, calendar_holds, calendar_init, calendar_release, calendar_take, slot_grid,
)
from buddysim.replay.engine.events cimport NEVER
from buddysim.replay.engine.port cimport Port

cdef extern from *:
    int count_trailing_zeros "__builtin_ctzll"(unsigned long long x) noexcept nogil


cdef int64_t queue_write(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    """Queues a write that leaves the L2 at `t`, and drains the queue where that is due; returns when the queue takes it."""
    cdef PseudoChannel* channel = location.channel
    cdef QueuedRow* queue = channel.queue
    cdef int64_t i = channel.n_queued - 1, taken = t
    cdef bint idle
    for _ in range(bursts):
        taken = larger(taken, channel.free_ps[channel.next_place])
        channel.next_place = channel.next_place + 1 if channel.next_place + 1 < dram.write_places else 0
    t = taken + dram.before_ps
    while i >= 0 and (queue[i].bank != location.bank or queue[i].row != location.row):
        i -= 1
    if i < 0:
        i = channel.n_queued
        queue[i] = QueuedRow(location.bank, location.row, t, 0)
        channel.n_queued += 1
    queue[i].bursts += bursts
    channel.queued_bursts += bursts
    idle = channel.bus.last_slot == channel.turned_slot
    idle = idle or not dram.drains_alone and channel.bus.last_slot < slot_at(&dram.bus_grid, t)
    if channel.queued_bursts >= dram.write_high:
        drain(dram, channel, t, 0 if idle else dram.write_low)
    elif idle and channel.queued_bursts >= dram.write_low:
        drain(dram, channel, t, 0)
    return taken


cdef void drain(Dram* dram, PseudoChannel* channel, int64_t t, int64_t remaining) noexcept nogil:
    """Writes queued rows, the oldest first, until no more than `remaining` bursts are queued, behind the reads booked."""
    cdef SlotGrid* grid = &dram.bus_grid
    cdef QueuedRow* row = channel.queue
    cdef int64_t slot, first, start, end, i
    calendar_forget(grid, &channel.bus, dram.now_ps)
    if channel.bus.last_slot == channel.turned_slot:        # no read since the last drain: the bus need not have turned back
        for slot in range(channel.turning_slot, channel.turned_slot + 1):
            calendar_release(grid, &channel.bus, slot)
        channel.bus.last_slot = channel.turning_slot - 1
        first = start = slot_at(grid, t)
        if dram.drains_alone and start > channel.bus.last_slot:
            channel.alone_slot = start
    else:
        first = larger(slot_at(grid, t), channel.bus.last_slot + 1)
        start = larger(slot_at(grid, t), channel.bus.last_slot + 1 + dram.read_to_write_slots)
        if dram.drains_alone:
            channel.alone_slot = first
    end = larger(start, channel.bus.last_slot + 1)
    while channel.queued_bursts > remaining:
        end = larger(end, write_row(dram, channel, row, start))
        channel.queued_bursts -= row.bursts
        row += 1
    channel.n_queued -= row - channel.queue
    for i in range(channel.n_queued):
        channel.queue[i] = row[i]
    turn_bus(channel, first, start)
    channel.turning_slot = end
    turn_bus(channel, end, end + dram.write_to_read_slots)
    channel.turned_slot = channel.bus.last_slot


cdef int64_t write_row(Dram* dram, PseudoChannel* channel, const QueuedRow* row, int64_t start) noexcept nogil:
    """Writes the bursts queued for a row, from slot `start` on; returns the slot after the last."""
    cdef DramTiming* timing = &dram.timing
    cdef Bank* bank = row.bank
    # The row is opened while the bus still serves others.
    cdef int64_t col = bank_open(dram, channel, bank, row.row, row.arrival_ps)
    cdef int64_t slot = larger(start, slot_at(&dram.bus_grid, col + timing.cwl))
    for _ in range(row.bursts):
        slot = calendar_first_free(&dram.bus_grid, &channel.bus, dram.now_ps, slot)
        calendar_take(&channel.bus, slot)
        channel.free_ps[channel.next_freed] = slot * dram.burst_ps - dram.before_ps
        channel.next_freed = channel.next_freed + 1 if channel.next_freed + 1 < dram.write_places else 0
        slot += timing.ccd_slots
    bank.col_ps = larger(bank.col_ps, slot * dram.burst_ps - timing.cwl)
    slot += 1 - timing.ccd_slots
    bank.ready_ps = larger(bank.ready_ps, slot * dram.burst_ps + timing.wr)
    return slot


cdef void turn_bus(PseudoChannel* channel, int64_t first, int64_t end) noexcept nogil:
    """Takes the slots in [first, end) that the bus needs to turn around."""
    cdef int64_t slot
    for slot in range(first, end):
        if calendar_holds(&channel.bus, slot):
            calendar_take(&channel.bus, slot)


cdef int64_t dram_would_read(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    """What `dram_read` would return: carried out, and the channel and the bank are then as they were."""
    cdef PseudoChannel channel = location.channel[0]
    cdef Bank bank = location.bank[0]
    cdef Port port = location.channel.port[0]
    t = dram_read(dram, location, bursts, t)
    location.channel[0], location.bank[0], location.channel.port[0] = channel, bank, port
    return t


cdef int dram_init(Arena* arena, Dram* dram) except -1:
    """Allocates the channels of a `Dram` whose numbers are set: all rows closed, the bus free, refresh due after tREFI."""
    cdef int i
    cdef int64_t whole_refresh_ps       # that takes bus and activations
    dram.bank_bits = count_trailing_zeros(dram.n_banks)
    dram.joined_ps = dram.timing.ccd_slots * dram.burst_ps
    dram.next_col_ps = dram.joined_ps - dram.burst_ps - dram.timing.cl
    dram.read_to_pre_ps = dram.timing.rtp - dram.burst_ps - dram.timing.cl
    if not dram.timing.rfc:
        dram.timing.refi = <int64_t>1 << 62     # never
        dram.refreshes_single_banks = False
    whole_refresh_ps = 0 if dram.refreshes_single_banks else dram.timing.rfc
    dram.bus_grid = slot_grid(dram.burst_ps, whole_refresh_ps, dram.timing.refi)
    dram.limits_activations = dram.timing.act_interval > dram.burst_ps
    dram.act_grid = slot_grid(larger(dram.timing.act_interval, dram.burst_ps), whole_refresh_ps, dram.timing.refi)
    dram.write_places = dram.write_high + MOST_BURSTS - 1
    dram.read_to_write_slots = (dram.timing.read_to_write + dram.burst_ps - 1) / dram.burst_ps
    dram.write_to_read_slots = (dram.timing.write_to_read + dram.burst_ps - 1) / dram.burst_ps
    dram.pseudo = <PseudoChannel*>arena_zeroed(arena, dram.n_pseudo, sizeof(PseudoChannel))
    dram.banks = <Bank*>arena_zeroed(arena, <size_t>dram.n_pseudo * dram.n_banks, sizeof(Bank))
    for i in range(dram.n_pseudo * <int>dram.n_banks):
        dram.banks[i].row[0] = NO_ROW
    for i in range(dram.n_pseudo):
        dram.pseudo[i].queue = <QueuedRow*>arena_zeroed(arena, WRITE_QUEUE_LIMIT, sizeof(QueuedRow))
        dram.pseudo[i].free_ps = <int64_t*>arena_zeroed(arena, dram.write_places, sizeof(int64_t))
        dram.pseudo[i].port = <Port*>arena_zeroed(arena, 1, sizeof(Port))
        dram.pseudo[i].alone_slot = NEVER
        dram.pseudo[i].turned_slot, dram.pseudo[i].latest_act_ps = -2, -dram.act_grid.slot_ps
        calendar_init(&dram.bus_grid, &dram.pseudo[i].bus)
        calendar_init(&dram.act_grid, &dram.pseudo[i].activations)
    return 0


cdef int dram_set_up(Arena* arena, Dram* dram, dict n) except -1:
    """Device memory of a machine (`parameters.engine_numbers`)."""
    dram.banked, dram.n_pseudo = n["dram_banked"], n["dram_pseudo"]
    dram.n_banks, dram.write_high, dram.write_low = n["dram_banks"], n["dram_write_high"], n["dram_write_low"]
    dram.burst_ps, dram.before_ps = n["dram_burst_ps"], n["dram_before_ps"]
    dram.after_ps, dram.simple_ps = n["dram_after_ps"], n["dram_simple_ps"]
    dram.burst_cost = n["dram_burst_cost"]
    dram.timing = n["dram_timing"]
    dram.refreshes_single_banks = n["dram_refreshes_single_banks"]
    dram.drains_alone = n["dram_drains_alone"]
    return dram_init(arena, dram)
