"""Set-up of a `Dram`, and its write queues."""
from buddysim.replay.dram.model.base cimport DramModelBase
from buddysim.replay.dram.refresh.base cimport RefreshBase
from buddysim.replay.dram.write_drain.base cimport WriteDrainBase
from buddysim.replay.primitives.arena cimport Arena, arena_zeroed
from buddysim.replay.primitives.horizon cimport trial_undo
from buddysim.replay.primitives.reservation_table cimport (
    first_free_slot, advance_table, table_init, release_slot, reserve_slot, slot_grid,
)

cdef extern from *:
    int count_trailing_zeros "__builtin_ctzll"(unsigned long long x) noexcept nogil


cdef int64_t enqueue_write(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    """Queues a write that leaves the L2 at `t`, and drains the queue if necessary; returns the time of its acceptance."""
    cdef PseudoChannel* channel = location.channel
    cdef QueuedRow* queue = channel.queue
    cdef int64_t i = channel.n_queued - 1, accepted_ps = t
    for _ in range(bursts):
        accepted_ps = max_i64(accepted_ps, channel.free_ps[channel.queue_tail])
        channel.queue_tail = channel.queue_tail + 1 if channel.queue_tail + 1 < dram.write_queue_entries else 0
    t = accepted_ps + dram.before_ps
    while i >= 0 and (queue[i].bank != location.bank or queue[i].row != location.row):
        i -= 1
    if i < 0:
        i = channel.n_queued
        queue[i] = QueuedRow(location.bank, location.row, t, 0)
        channel.n_queued += 1
    queue[i].bursts += bursts
    channel.queued_bursts += bursts
    if dram.write_queued != NULL:
        dram.write_queued(dram, channel, t)
    else:
        drain_among_reads(dram, channel, t)
    return accepted_ps


cdef inline void drain_among_reads(Dram* dram, PseudoChannel* channel, int64_t t) noexcept nogil:
    """Drains a queue that is due at `t`; the bus is idle if no read is reserved from `t` on or since the last drain."""
    cdef int64_t last_slot = channel.bus.last_slot
    drain_if_due(dram, channel, t, last_slot == channel.turnaround_last_slot or last_slot < slot_at(&dram.bus_grid, t))


cdef int64_t drain_if_due(Dram* dram, PseudoChannel* channel, int64_t t, bint idle) noexcept nogil:
    """Drains a queue at a watermark: the high one, or the low one if the bus is idle; returns as `drain_writes`."""
    if channel.queued_bursts >= dram.write_high_watermark:
        return drain_writes(dram, channel, t, 0 if idle else dram.write_low_watermark)
    if idle and channel.queued_bursts >= dram.write_low_watermark:
        return drain_writes(dram, channel, t, 0)
    return -1


cdef int64_t drain_writes(Dram* dram, PseudoChannel* channel, int64_t t, int64_t remaining) noexcept nogil:
    """Writes queued rows, oldest first, until at most `remaining` bursts are queued, after the reads reserved so far.

    Returns the slot from which on the drain has the bus; -1 if it continues the drain before it.
    """
    cdef SlotGrid* grid = &dram.bus_grid
    cdef QueuedRow* row = channel.queue
    cdef int64_t slot, first, start, end, i, began = -1
    advance_table(grid, &channel.bus, dram.horizon)
    if channel.bus.last_slot == channel.turnaround_last_slot:        # no read since the last drain: its turnaround is not needed
        for slot in range(channel.turnaround_first_slot, channel.turnaround_last_slot + 1):
            release_slot(grid, &channel.bus, dram.horizon, slot)
        channel.bus.last_slot = channel.turnaround_first_slot - 1
        first = start = slot_at(grid, t)
        if start > channel.bus.last_slot:
            began = start
    else:
        began = first = max_i64(slot_at(grid, t), channel.bus.last_slot + 1)
        start = max_i64(slot_at(grid, t), channel.bus.last_slot + 1 + dram.read_to_write_slots)
    end = max_i64(start, channel.bus.last_slot + 1)
    while channel.queued_bursts > remaining:
        end = max_i64(end, write_queued_row(dram, channel, row, start))
        channel.queued_bursts -= row.bursts
        row += 1
    channel.n_queued -= row - channel.queue
    for i in range(channel.n_queued):
        channel.queue[i] = row[i]
    reserve_turnaround(dram, channel, first, start)
    channel.turnaround_first_slot = end
    reserve_turnaround(dram, channel, end, end + dram.write_to_read_slots)
    channel.turnaround_last_slot = channel.bus.last_slot
    return began


cdef int64_t write_queued_row(Dram* dram, PseudoChannel* channel, const QueuedRow* row, int64_t start) noexcept nogil:
    """Writes the queued bursts of a row, from slot `start` on; returns the slot after the last one."""
    cdef DramTiming* timing = &dram.timing
    cdef Bank* bank = row.bank
    # The bank opens the row while the bus serves other requests, but not before the drain is decided.
    cdef int64_t col = open_row(dram, channel, bank, row.row, row.arrival_ps, dram.horizon.now_ps)
    cdef int64_t slot = max_i64(start, slot_at(&dram.bus_grid, col + timing.cwl))
    for _ in range(row.bursts):
        slot = first_free_slot(&dram.bus_grid, &channel.bus, dram.horizon, slot)
        reserve_slot(&dram.bus_grid, &channel.bus, dram.horizon, slot)
        channel.free_ps[channel.queue_head] = slot * dram.burst_ps - dram.before_ps
        channel.queue_head = channel.queue_head + 1 if channel.queue_head + 1 < dram.write_queue_entries else 0
        slot += timing.ccd_slots
    bank.col_ps = max_i64(bank.col_ps, slot * dram.burst_ps - timing.cwl)
    slot += 1 - timing.ccd_slots
    bank.ready_ps = max_i64(bank.ready_ps, slot * dram.burst_ps + timing.wr)
    return slot


cdef void reserve_turnaround(const Dram* dram, PseudoChannel* channel, int64_t first, int64_t end) noexcept nogil:
    """Reserves the slots in [first, end) for a bus turnaround."""
    cdef int64_t slot
    for slot in range(first, end):
        reserve_slot(&dram.bus_grid, &channel.bus, dram.horizon, slot)


cdef int64_t dram_read_dry_run(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    """The result of `dram_read`, without its effects: the state of channel and bank is restored."""
    cdef PseudoChannel channel
    cdef Bank bank = location.bank[0]
    if dram.model != NULL:
        return dram.model.read_dry_run(dram, location, bursts, t)
    advance_table(&dram.bus_grid, &location.channel.bus, dram.horizon)      # so that the trial takes over no page
    advance_table(&dram.act_grid, &location.channel.activations, dram.horizon)
    channel = location.channel[0]
    dram.horizon.trial = True
    t = dram_read(dram, location, bursts, t)
    trial_undo(dram.horizon)
    channel.bus.far_pages = location.channel.bus.far_pages          # pages that it has created stay
    channel.activations.far_pages = location.channel.activations.far_pages
    location.channel[0], location.bank[0] = channel, bank
    return t


cdef int dram_configure(Arena* arena, Dram* dram, Horizon* horizon, dict n, dict policies) except -1:
    """Sets up the device memory of a machine (`parameters.engine_numbers`) and its policies."""
    dram.horizon = horizon
    dram.n_pseudo, dram.n_banks = n["dram_pseudo"], n["dram_banks"]
    dram.bank_bits = count_trailing_zeros(dram.n_banks)
    dram.write_high_watermark, dram.write_low_watermark = n["dram_write_high_watermark"], n["dram_write_low_watermark"]
    dram.write_queue_entries = dram.write_high_watermark + MAX_BURSTS - 1
    dram.burst_ps, dram.before_ps, dram.after_ps = n["dram_burst_ps"], n["dram_before_ps"], n["dram_after_ps"]
    dram.timing = n["dram_timing"]
    dram.blocking_refresh_ps = dram.timing.rfc
    if dram.timing.rfc:
        (<RefreshBase?>policies["DRAM refresh"]).prepare(arena, dram)
    else:
        dram.timing.refi = <int64_t>1 << 62     # never
    timing_init(dram)
    channels_init(arena, dram)
    (<WriteDrainBase?>policies["write drain"]).prepare(arena, dram)
    (<DramModelBase?>policies["DRAM model"]).prepare(arena, dram)
    return 0


cdef void timing_init(Dram* dram) noexcept:
    """Derives slots and sums of the timing."""
    dram.row_merge_ps = dram.timing.ccd_slots * dram.burst_ps
    dram.next_col_ps = dram.row_merge_ps - dram.burst_ps - dram.timing.cl
    dram.read_to_pre_ps = dram.timing.rtp - dram.burst_ps - dram.timing.cl
    dram.bus_grid = slot_grid(dram.burst_ps, dram.blocking_refresh_ps, dram.timing.refi)
    dram.limits_activations = dram.timing.act_interval > dram.burst_ps
    dram.act_grid = slot_grid(max_i64(dram.timing.act_interval, dram.burst_ps), dram.blocking_refresh_ps, dram.timing.refi)
    dram.read_to_write_slots = (dram.timing.read_to_write + dram.burst_ps - 1) / dram.burst_ps
    dram.write_to_read_slots = (dram.timing.write_to_read + dram.burst_ps - 1) / dram.burst_ps


cdef int channels_init(Arena* arena, Dram* dram) except -1:
    """Allocates the channels: all rows closed, the bus free, the first refresh after tREFI; earlier ones if staggered."""
    cdef int i
    cdef int64_t refresh_offset_ps = 0
    dram.pseudo = <PseudoChannel*>arena_zeroed(arena, dram.n_pseudo, sizeof(PseudoChannel))
    dram.banks = <Bank*>arena_zeroed(arena, <size_t>dram.n_pseudo * dram.n_banks, sizeof(Bank))
    for i in range(dram.n_pseudo * <int>dram.n_banks):
        dram.banks[i].row[0] = NO_ROW
    for i in range(dram.n_pseudo):
        dram.pseudo[i].queue = <QueuedRow*>arena_zeroed(arena, WRITE_QUEUE_LIMIT, sizeof(QueuedRow))
        dram.pseudo[i].free_ps = <int64_t*>arena_zeroed(arena, dram.write_queue_entries, sizeof(int64_t))
        dram.pseudo[i].turnaround_last_slot, dram.pseudo[i].latest_act_ps = -2, -dram.act_grid.slot_ps
        if dram.staggers_refreshes:
            refresh_offset_ps = dram.timing.refi * i / dram.n_pseudo
        table_init(&dram.bus_grid, &dram.pseudo[i].bus, refresh_offset_ps)
        table_init(&dram.act_grid, &dram.pseudo[i].activations, refresh_offset_ps)
    return 0
