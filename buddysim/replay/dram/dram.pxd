"""Device memory: channels of pseudo-channels, each with banks; policies choose when it refreshes and when writes drain.

Each pseudo-channel has two reservation tables: of its data bus, with a slot for each burst of 32 B, and of its row
activations, with a slot for each that tRRD and tFAW allow. So neither exceeds its rate, and requests reserve slots in any order
of time. The state of a request's bank gives its earliest slot: open row, tRCD, tRP, tRAS, tRC, tCCD. A request reserves its
slots when it arrives; no queue is simulated cycle by cycle. The effects of a first-ready scheduler follow from the tables, as a
later request to a ready bank takes an earlier free slot, and from row-hit merging: a request to a row that is scheduled to
close later is a hit. Writes wait in a queue. A write drain serves them together, from the high to the low watermark or when the
bus is idle, with one bus turnaround. Refresh reserves bus and activations for tRFC every tREFI and closes the rows.

`DramOps` replaces all of it.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from buddysim.replay.primitives.arena cimport Arena
from buddysim.replay.primitives.compiler_hints cimport likely, prefetch, unlikely
from buddysim.replay.primitives.division cimport Divisor
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.horizon cimport Horizon
from buddysim.replay.primitives.kinds cimport TRAFFIC_KINDS, Traffic
from buddysim.replay.primitives.reservation_table cimport (
    TABLE_WORDS, ReservationTable, SlotGrid, reserve_first_free, reserve_slots, slot_at,
)
from buddysim.replay.primitives.set_search cimport push_number, push_time, set_match

cdef enum:
    NO_ROW = 0xffffffff
    BANK_ROWS = 4            # rows that a bank remembers
    WRITE_QUEUE_LIMIT = 128  # rows in a write queue
    MAX_BURSTS = 4           # of a request

# JEDEC timing parameters in ps, except where said otherwise.
cdef struct DramTiming:
    int64_t rcd
    int64_t rp
    int64_t cl
    int64_t cwl
    int64_t ras
    int64_t ccd_slots      # tCCD_L in bursts
    int64_t act_interval   # max(tRRD, tFAW / 4)
    int64_t wr
    int64_t read_to_write  # bus turnaround: end of read data to start of write data
    int64_t write_to_read  # bus turnaround: end of write data to start of read data
    int64_t rtp
    int64_t rfc
    int64_t refi

# One cache line of the CPU.
cdef struct Bank:
    uint32_t[BANK_ROWS] row           # open row (NO_ROW: closed), then the rows open before it, latest first
    int64_t[BANK_ROWS] row_closed_ps  # of each: time at which the row before it was closed, its activation less tRP
    int64_t col_ps                    # earliest next column command
    int64_t ready_ps                  # earliest precharge of the open row, or activation if none is open

# Queued writes to one row.
cdef struct QueuedRow:
    Bank* bank
    uint32_t row
    int64_t arrival_ps  # of the first write
    int64_t bursts

# What a read needs, except for reservations, lies in three cache lines of the CPU.
cdef struct PseudoChannel:
    int64_t latest_act_ps          # latest activation
    int64_t row_misses
    int64_t row_hits
    int64_t[TRAFFIC_KINDS] moved   # bursts by Traffic, including queued writes
    ReservationTable bus           # a slot per burst
    ReservationTable activations   # slots of `act_interval`
    int64_t turnaround_first_slot  # bus turnaround from writes to reads: first slot
    int64_t turnaround_last_slot   # and last slot; -2: none yet
    int64_t queued_bursts
    int64_t n_queued               # queued rows
    QueuedRow* queue               # [WRITE_QUEUE_LIMIT], by arrival
    int64_t* free_ps               # [write_queue_entries], ring: time at which each entry of the write queue is free
    int64_t queue_tail             # next entry of `free_ps` that a write takes
    int64_t queue_head             # next entry of `free_ps` that a drain frees
    int64_t[8] reserved            # to full cache lines; an odd number, so that one multiplication finds a channel

# Where data lie in device memory.
cdef struct DeviceLocation:
    PseudoChannel* channel
    Bank* bank
    uint32_t row

cdef struct Dram

ctypedef int64_t (*ReadOp)(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil
ctypedef int64_t (*IdleOp)(const Dram* dram, int bursts) noexcept nogil
ctypedef int64_t (*RefreshBegan)(Dram* dram, const Bank* bank, int64_t t) noexcept nogil
ctypedef int64_t (*ReadSlotOp)(const Dram* dram, const PseudoChannel* channel, int64_t slot) noexcept nogil
ctypedef void (*WriteQueuedOp)(Dram* dram, PseudoChannel* channel, int64_t t) noexcept nogil

# A model of device memory other than `banked`.
cdef struct DramOps:
    ReadOp read          # as `dram_read`
    ReadOp read_dry_run  # as `dram_read_dry_run`
    ReadOp write         # as `dram_write`
    IdleOp idle_ps       # as `dram_idle_ps`

cdef struct Dram:
    # Hooks of the policies; NULL: the default
    const DramOps* model         # NULL: `banked`
    RefreshBegan refresh_began   # start of the last refresh of a bank at `t`; NULL: all banks of all channels refresh together
    ReadSlotOp read_slot         # first slot of the bus, from `slot` on, that a read may take; NULL: `slot`
    WriteQueuedOp write_queued   # called with a queue that has got a write at `t`; NULL: `drain_among_reads`
    void* model_state            # each policy's own, in the run's arena
    void* refresh_state
    void* drain_state
    int n_pseudo                 # pseudo-channels of all channels
    uint32_t n_banks             # per pseudo-channel, a power of two
    int bank_bits                # log2 of n_banks
    int write_high_watermark     # queued bursts that start a write drain
    int write_low_watermark      # queued bursts that end it, and that start one on an idle bus
    int write_queue_entries      # bursts in a write queue
    Horizon* horizon             # of the run
    SlotGrid bus_grid
    SlotGrid act_grid
    bint limits_activations      # `act_interval` is longer than a burst; otherwise the bus limits activations
    int64_t read_to_write_slots  # bus turnaround, in slots
    int64_t write_to_read_slots  # bus turnaround, in slots
    int64_t burst_ps             # a 32 B burst, and a slot of the bus
    int64_t before_ps            # L2 slice to the first command
    int64_t after_ps             # end of the data to the L2 slice
    int64_t refreshed_ps         # start of the refresh interval of the last request
    int64_t blocking_refresh_ps  # bus and activations that a refresh of all banks reserves; 0: none
    bint staggers_refreshes      # pseudo-channel p refreshes p / n_pseudo of an interval after pseudo-channel 0
    int64_t row_merge_ps         # per burst merged into a closed row: delay of the bank's next column command
    int64_t next_col_ps          # end of read data to the bank's next column command: negative
    int64_t read_to_pre_ps       # end of read data to the precharge: negative
    DramTiming timing
    Divisor stripe_entries              # entries of a stripe: one per pseudo-channel
    Divisor row_stripe_entries          # entries of a row stripe: one row in every bank group of every pseudo-channel
    Divisor banks_of_group
    uint32_t bank_groups                # a power of two
    PseudoChannel* pseudo        # [n_pseudo]
    Bank* banks                  # [n_pseudo][n_banks]
    bint generic_reads           # reads go through `device_fetch_generic`


cdef int64_t dram_read_dry_run(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil
cdef int64_t enqueue_write(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil
cdef int64_t drain_if_due(Dram* dram, PseudoChannel* channel, int64_t t, bint idle) noexcept nogil
cdef int64_t drain_writes(Dram* dram, PseudoChannel* channel, int64_t t, int64_t remaining) noexcept nogil


cdef inline int64_t refresh_interval_start(Dram* dram, int64_t t) noexcept nogil:
    """Start of the refresh interval of pseudo-channel 0 that contains `t`; others have the same unless staggered."""
    cdef int64_t began = dram.refreshed_ps
    if unlikely(<uint64_t>(t - began) >= <uint64_t>dram.timing.refi):
        if t < began and began - t <= dram.timing.refi:         # some requests belong to the interval before
            return began - dram.timing.refi
        began = dram.refreshed_ps = t - t % dram.timing.refi
    return began


cdef inline int64_t reserve_activation(Dram* dram, PseudoChannel* channel, int64_t t) noexcept nogil:
    """Time of a row's activation, requested at `t`: the first free slot, and an interval after the latest activation before it.

    A CPU cannot predict which slot is the latest, so there is a mask instead of a branch. The latest activation lies in the latest
    reserved slot; the interval after it ends before the slot after next.
    """
    cdef int64_t latest = channel.activations.last_slot, slot, after_latest
    slot = reserve_first_free(&dram.act_grid, &channel.activations, dram.horizon, slot_at(&dram.act_grid, t))
    t = max_i64(t, slot * dram.act_grid.slot_ps)
    after_latest = channel.latest_act_ps + dram.act_grid.slot_ps
    t = max_i64(t, after_latest if slot > latest else t)
    channel.latest_act_ps = max_i64(channel.latest_act_ps, t)
    return t


cdef inline int64_t open_row(Dram* dram, PseudoChannel* channel, Bank* bank, uint32_t row, int64_t t,
                             int64_t earliest_act) noexcept nogil:
    """Opens `row` for a request that arrives at `t`; returns the time of its first column command.

    The row is activated at `earliest_act` or later. A row that is scheduled to close after `t` is a row hit: it gets another column
    command after its activation (row-hit merging).
    """
    cdef DramTiming* timing = &dram.timing
    cdef int64_t act, i
    if unlikely(dram.refresh_began != NULL):
        act = dram.refresh_began(dram, bank, t)
    else:
        act = refresh_interval_start(dram, t)
    if unlikely(bank.row_closed_ps[0] + timing.rp < act):     # opened before the refresh
        bank.row[0] = NO_ROW
        bank.ready_ps = act + timing.rfc
    i = set_match(bank.row, BANK_ROWS, row)
    # A CPU can hardly predict whether the row is open, or will be: one branch for all cases.
    if (i >= 0) & ((i == 0) | (t < bank.row_closed_ps[(i - 1) & (BANK_ROWS - 1)])):
        channel.row_hits += 1
        act = bank.row_closed_ps[i] + timing.rp + timing.rcd
        return max_i64(t, act + (bank.col_ps - act & -<int64_t>(i == 0)))
    channel.row_misses += 1
    act = max_i64(t, bank.ready_ps)
    if bank.row[0] != NO_ROW:
        act += timing.rp
    if earliest_act:                # a constant 0 for reads, whose activations are never earlier
        act = max_i64(act, earliest_act)
    if likely(dram.limits_activations):
        act = reserve_activation(dram, channel, act)
    push_number(bank.row, row)
    push_time(bank.row_closed_ps, act - timing.rp)
    bank.col_ps = act + timing.rcd
    bank.ready_ps = act + timing.ras
    return bank.col_ps


cdef inline void dram_location(const Dram* dram, uint32_t bank, uint32_t row, DeviceLocation* location) noexcept nogil:
    """Location of a row in a bank; banks are numbered over all pseudo-channels."""
    location.channel = dram.pseudo + (bank >> dram.bank_bits)
    location.bank = dram.banks + bank
    location.row = row


cdef inline void dram_prefetch(const DeviceLocation* location) noexcept nogil:
    """Prefetches the data of a read into the CPU's cache."""
    cdef PseudoChannel* channel = location.channel
    prefetch(location.bank)
    prefetch(&channel.bus.bits[(channel.bus.last_slot >> 6) & (TABLE_WORDS - 1)])
    prefetch(&channel.activations.bits[(channel.activations.last_slot >> 6) & (TABLE_WORDS - 1)])


cdef inline int64_t banked_read(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    cdef PseudoChannel* channel = location.channel
    cdef Bank* bank = location.bank
    cdef int64_t data, last, first, done, slot
    cdef bint merged_row
    data = open_row(dram, channel, bank, location.row, t, 0) + dram.timing.cl
    merged_row = bank.row[0] != location.row
    slot = slot_at(&dram.bus_grid, data)
    if unlikely(dram.read_slot != NULL):
        slot = dram.read_slot(dram, channel, slot)
    last = reserve_slots(&dram.bus_grid, &channel.bus, dram.horizon, slot, bursts, dram.timing.ccd_slots, &first)
    done = max_i64(data, first * dram.burst_ps) + (last - first + 1) * dram.burst_ps
    # Merged bursts delay the row that is open by their own duration.
    bank.col_ps = bank.col_ps + bursts * dram.row_merge_ps if merged_row else done + dram.next_col_ps
    bank.ready_ps = max_i64(bank.ready_ps, done + dram.read_to_pre_ps)
    return done


cdef inline int64_t dram_read(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    """Reads `bursts` bursts of 32 B from one row; the request leaves the L2 at `t`. Returns the arrival of the last one there.

    The caller counts the bursts (`PseudoChannel.moved`).
    """
    if dram.model != NULL:
        return dram.model.read(dram, location, bursts, t)
    return banked_read(dram, location, bursts, t + dram.before_ps) + dram.after_ps


cdef inline int64_t dram_idle_ps(const Dram* dram, int bursts) noexcept nogil:
    """Least latency of `dram_read`: row hit, idle bus."""
    if dram.model != NULL:
        return dram.model.idle_ps(dram, bursts)
    return dram.before_ps + dram.timing.cl + ((bursts - 1) * dram.timing.ccd_slots + 1) * dram.burst_ps + dram.after_ps


cdef inline int64_t dram_write(Dram* dram, const DeviceLocation* location, int bursts, Traffic kind, int64_t t) noexcept nogil:
    """Posts a write of `bursts` bursts to one row, which leaves the L2 at `t`. Returns the time at which the channel accepts it."""
    location.channel.moved[<int>kind] += bursts
    if unlikely(dram.model != NULL):
        return dram.model.write(dram, location, bursts, t)
    return enqueue_write(dram, location, bursts, t)


cdef int dram_configure(Arena* arena, Dram* dram, Horizon* horizon, dict n, dict policies) except -1
