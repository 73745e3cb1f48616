"""The event loop: thread blocks go to SMs, warps issue, kernels end.

The loop runs without the GIL and allocates nothing. It returns to Python when it needs a kernel's next chunk, when a kernel has
ended, and after a number of operations, so that progress can be shown and the run be interrupted.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from buddysim.replay.engine.cache cimport DIRTY, Row, SectorCache, cache_clear_unit, cache_init, cache_row
from buddysim.replay.engine.compressed cimport prepare_moves
from buddysim.replay.engine.division cimport divisor
from buddysim.replay.engine.dram cimport dram_init
from buddysim.replay.engine.events cimport KEY_NEVER, NEVER, Events, events_init, events_put, events_set, events_take, key_number, key_time
from buddysim.replay.engine.arena cimport Arena, arena_free, arena_zeroed
from buddysim.replay.engine.kinds cimport METADATA_READ
from buddysim.replay.engine.locate cimport Spot, l2_spot
from buddysim.replay.engine.memory cimport (
    MemorySystem, Region, Slice, SmPorts, cache_find, cache_replace, cache_touch, evict_line, larger, mshrs_init,
)
from buddysim.replay.engine.places cimport LinePlace, PlaceRules, lane_divisor, places_eight_at_a_time
from buddysim.replay.engine.port cimport Port
from buddysim.replay.engine.scheme cimport SchemeBase
from buddysim.replay.engine.sm cimport (
    L1, MAX_LATER, MAX_WARPS, NO_GREEDY, L1s, LookAhead, Pending, Scheduler, Warp, locate_lines, look_ahead, scheduler_add,
    scheduler_pick, scheduler_put, scheduler_remove, scheduler_set, scheduler_take, scheduler_time, warp_access, warp_next,
    warp_passed,
)
from buddysim.replay.engine.stream cimport OP_END, CoreTiming, StreamMemory, StreamOp, stream_fill, stream_free, stream_reserve
from buddysim.trace.records cimport OP_BARRIER, BlockRecord, WarpOp, WarpRecord

cdef extern from *:
    int bits_set "__builtin_popcountll"(unsigned long long x) noexcept nogil
    int lowest_bit "__builtin_ctzll"(unsigned long long x) noexcept nogil

cdef enum Stop:
    STOP_IDLE = 0
    STOP_PAUSE = 1
    STOP_CHUNK = 2
    STOP_DONE = 3

cdef struct Chunk:
    const BlockRecord* blocks
    StreamMemory streams        # of its warps
    int64_t n_blocks
    int64_t blocks_left         # not yet finished
    int next_free               # list of unused places

cdef struct ActiveKernel:
    int used
    int handle
    int started
    int64_t start_ps
    int64_t blocks_left         # not yet dispatched
    int64_t blocks_running
    int64_t chunk               # the chunk that blocks come from, -1: the next one is needed
    int64_t next_block          # in that chunk
    int warps_per_block
    int threads_per_block
    int64_t registers_per_block
    int64_t shared_per_block

cdef struct ResidentBlock:
    int kernel
    int64_t chunk
    int warps_left
    int at_barrier
    int next_free

cdef struct Room:               # what an SM has left
    uint64_t free_slots
    int blocks
    int threads
    int64_t registers
    int64_t shared
    int64_t next_block_ps

cdef enum:
    MAX_KERNELS = 128           # running at once
    SHOWN_BINS = 40             # of a histogram of times: the last one is for all longer ones


cdef PlaceRules place_rules(const MemorySystem* m, const SectorCache* l1, uint32_t slices_per_channel, bint has_metadata):
    """What `places_locate` needs."""
    cdef PlaceRules rules
    rules.slices, rules.slices_per_channel = lane_divisor(m.n_slices.by), lane_divisor(slices_per_channel)
    rules.l1_sets, rules.l2_sets = lane_divisor(l1.sets.by), lane_divisor(m.l2.sets.by)
    rules.pseudo_per_slice, rules.pieces = lane_divisor(m.pseudo_per_slice.by), lane_divisor(m.piece_entries.by)
    rules.banks_of_group, rules.stripes = lane_divisor(m.banks_of_group.by), lane_divisor(m.stripe_entries.by)
    rules.metadata_slices, rules.metadata_sets = lane_divisor(m.metadata_slices.by), lane_divisor(m.metadata.sets.by)
    rules.l1_row_bytes, rules.l2_row_bytes, rules.metadata_row_bytes = l1.row_bytes, m.l2.row_bytes, m.metadata.row_bytes
    rules.banks, rules.bank_groups = m.dram.n_banks, m.bank_groups
    rules.metadata_shift, rules.metadata_sectors = m.metadata_shift, m.metadata_sectors
    rules.metadata_entry, rules.has_metadata = m.metadata_entry, has_metadata
    return rules


cdef class Engine:
    """One run's machine state.

    Parameters
    ----------
    numbers : dict of int
        the machine in picoseconds, bytes and counts (`parameters.engine_numbers`)
    regions : int64 array (n, 4)
        first entry, end entry, place, kept sectors of each allocation, in order of entries
    region_of_page : uint32 array (entries / 64,)
        for each 64 entries the first region in them
    state : uint8 array (entries,)
        size class of each entry now | after a write-back << 4; the engine changes it
    scheme : SchemeBase
    """

    cdef Arena arena        # where all that follows lies, but for the chunks
    cdef MemorySystem m
    cdef L1s l1
    cdef CoreTiming core
    cdef Events events
    cdef LookAhead ahead
    cdef int n_sms, n_schedulers, max_blocks
    cdef int64_t block_interval_ps, block_latency_ps
    cdef Scheduler* schedulers
    cdef Warp* warps
    cdef Pending* later         # [warps][MAX_LATER]
    cdef Room* rooms
    cdef Room empty_room
    cdef ResidentBlock* blocks
    cdef int free_block
    cdef ActiveKernel[128] kernels
    cdef int n_kernels          # places used so far
    cdef int n_waiting          # kernels that have not started
    cdef Chunk* chunks
    cdef int64_t n_chunks
    cdef int free_chunk
    cdef list held              # what keeps a chunk's blocks alive
    cdef int next_sm
    cdef int refill
    cdef int stop_kernel
    cdef readonly int64_t now_ps
    cdef readonly int64_t warp_instructions
    cdef int64_t issue_busy_ps
    cdef SchemeBase scheme
    cdef object keep

    def __cinit__(self, dict numbers, regions, region_of_page, state, SchemeBase scheme):
        cdef int64_t[:, ::1] region_rows = regions
        cdef uint32_t[::1] pages = region_of_page
        cdef uint8_t[::1] states = state
        cdef int i, slots, n_slices
        cdef MemorySystem* m = &self.m
        n = numbers
        self.scheme, self.keep = scheme, (region_of_page, state)
        self.held = []
        self.free_chunk = -1
        self.n_sms, self.n_schedulers = n["sms"], n["schedulers"]
        self.max_blocks = n["sm_blocks"]
        self.block_interval_ps, self.block_latency_ps = n["block_interval_ps"], n["block_latency_ps"]

        self.core.cycle_ps, self.core.step_ps = n["cycle_ps"], n["step_ps"]
        self.core.issue_interval_ps, self.core.assumed_ps = n["issue_interval_ps"], n["assumed_ps"]
        self.core.barrier_ps = n["barrier_ps"]
        self.core.scale_num, self.core.scale_den = n["gap_scale_num"], n["gap_scale_den"]
        self.core.round_robin, self.core.blocking_atomics = n["round_robin"], n["blocking_atomics"]

        self.l1.enabled = n["l1_enabled"]
        cache_init(&self.arena, &self.l1.cache, self.n_sms, n["l1_sets"], n["l1_ways"])
        self.l1.hit_ps, self.l1.line_ps, self.l1.queue_ps = n["l1_hit_ps"], n["l1_line_ps"], n["l1_queue_ps"]
        self.l1.sms = <L1*>arena_zeroed(&self.arena, self.n_sms, sizeof(L1))
        for i in range(self.n_sms):
            self.l1.sms[i].sets = i * self.l1.cache.sets.by * self.l1.cache.row_bytes
            mshrs_init(&self.arena, &self.l1.sms[i].loads, n["l1_mshrs"])
            mshrs_init(&self.arena, &self.l1.sms[i].stores, n["l1_mshrs"])

        m.fill, m.writeback = scheme.fill, scheme.writeback
        m.request_ps, m.reply_ps = n["request_ps"], n["reply_ps"]
        m.sector_ps, m.slice_cost = n["sector_ps"], n["slice_cost"]
        m.reply_cost, m.request_cost = n["reply_cost"], n["request_cost"]
        m.sms = <SmPorts*>arena_zeroed(&self.arena, self.n_sms, sizeof(SmPorts))
        m.n_slices, m.pseudo_per_slice = divisor(n["slices"]), divisor(n["pseudo_per_slice"])
        n_slices = n["slices"]
        m.slices = <Slice*>arena_zeroed(&self.arena, n_slices, sizeof(Slice))
        for i in range(n_slices):
            mshrs_init(&self.arena, &m.slices[i].mshrs, n["l2_mshrs"])
            m.slices[i].first_pseudo = i // <int>n["slices_per_channel"] * <int>n["pseudo_per_slice"]
        cache_init(&self.arena, &m.l2, n_slices, n["l2_sets"], n["l2_ways"])

        m.codec_ps, m.codec_cost = n["codec_ps"], n["codec_cost"]
        m.overlap = n["metadata_overlap"]
        m.whole_raw_entry, m.eight_byte_state = n["whole_raw_entry"], n["eight_byte_state"]
        prepare_moves(m)
        m.perfect_metadata, m.metadata_ps = n["perfect_metadata"], n["metadata_ps"]
        m.metadata_sectors = n["metadata_line_sectors"]
        m.metadata_shift = 5 + m.metadata_sectors.bit_length()
        cache_init(&self.arena, &m.metadata, n["metadata_slices"], n["metadata_sets"], n["metadata_ways"])

        m.dram.banked, m.dram.n_pseudo = n["dram_banked"], n["dram_pseudo"]
        m.dram.n_banks, m.dram.write_queue = n["dram_banks"], n["dram_write_queue"]
        m.dram.burst_ps, m.dram.before_ps = n["dram_burst_ps"], n["dram_before_ps"]
        m.dram.after_ps, m.dram.simple_ps = n["dram_after_ps"], n["dram_simple_ps"]
        m.dram.burst_cost = n["dram_burst_cost"]
        m.dram.timing = n["dram_timing"]
        dram_init(&self.arena, &m.dram)
        m.stripe_entries, m.piece_entries = divisor(n["dram_pseudo"]), divisor(n["piece_entries"])
        m.metadata_slices = divisor(n["metadata_slices"])
        m.bank_groups, m.banks_of_group = n["dram_bank_groups"], divisor(n["dram_banks"] // n["dram_bank_groups"])
        m.metadata_entry = <uint32_t>states.shape[0]
        m.rules = place_rules(m, &self.l1.cache, n["slices_per_channel"], scheme.uses_targets and not m.perfect_metadata)
        m.eight_at_a_time = places_eight_at_a_time()

        m.link.byte_cost_num, m.link.byte_cost_den = n["link_byte_cost"]
        m.link.read_ps = n["link_read_ps"]
        m.link.ports = <Port*>arena_zeroed(&self.arena, 2, sizeof(Port))
        m.link.header_bytes, m.link.packet_bytes = n["link_header_bytes"], n["link_packet_bytes"]

        m.n_entries = states.shape[0]
        m.state = &states[0]
        m.region_of_page = &pages[0]
        m.n_regions = <int>region_rows.shape[0]
        m.regions = <Region*>arena_zeroed(&self.arena, m.n_regions, sizeof(Region))
        m.last_region = m.regions
        for i in range(m.n_regions):
            m.regions[i].first_entry = <uint32_t>region_rows[i, 0]
            m.regions[i].entries = <uint32_t>(region_rows[i, 1] - region_rows[i, 0])
            m.regions[i].placement, m.regions[i].kept = <int>region_rows[i, 2], <int>region_rows[i, 3]

        self.schedulers = <Scheduler*>arena_zeroed(&self.arena, <size_t>self.n_sms * self.n_schedulers, sizeof(Scheduler))
        self.warps = <Warp*>arena_zeroed(&self.arena, <size_t>self.n_sms * MAX_WARPS, sizeof(Warp))
        self.later = <Pending*>arena_zeroed(&self.arena, <size_t>self.n_sms * MAX_WARPS * MAX_LATER, sizeof(Pending))
        self.rooms = <Room*>arena_zeroed(&self.arena, self.n_sms, sizeof(Room))
        self.blocks = <ResidentBlock*>arena_zeroed(&self.arena, <size_t>self.n_sms * self.max_blocks, sizeof(ResidentBlock))
        events_init(&self.arena, &self.events, self.n_sms * self.n_schedulers)
        for i in range(self.n_sms * self.n_schedulers):
            self.schedulers[i].greedy = NO_GREEDY
            self.schedulers[i].first = KEY_NEVER
            for slots in range(MAX_WARPS):
                self.schedulers[i].ready[slots] = KEY_NEVER
        slots = n["sm_warps"]
        self.empty_room.free_slots = ~<uint64_t>0 if slots >= 64 else (<uint64_t>1 << slots) - 1
        self.empty_room.blocks, self.empty_room.threads = self.max_blocks, n["sm_threads"]
        self.empty_room.registers, self.empty_room.shared = n["sm_registers"], n["sm_shared"]
        for i in range(self.n_sms * MAX_WARPS):
            self.warps[i].number = i
        for i in range(self.n_sms):
            self.rooms[i] = self.empty_room
        for i in range(self.n_sms * self.max_blocks):
            self.blocks[i].next_free = i + 1
        self.blocks[self.n_sms * self.max_blocks - 1].next_free = -1
        scheme.prepare(m, &self.arena)

    def __dealloc__(self):
        cdef int64_t place
        for place in range(self.n_chunks):
            stream_free(&self.chunks[place].streams)
        free(self.chunks)
        arena_free(&self.arena)

    # What the driver hands in

    def start_kernel(self, int handle, int64_t start_ps, int64_t blocks, int warps_per_block, int threads_per_block,
                     int64_t registers_per_block, int64_t shared_per_block):
        """Has a kernel's thread blocks dispatched from `start_ps` on.

        Returns
        -------
        False where no further kernel can run beside those that do
        """
        cdef int place
        for place in range(MAX_KERNELS):
            if not self.kernels[place].used:
                break
        else:
            return False
        self.n_kernels = max(self.n_kernels, place + 1)
        self.n_waiting += 1
        self.kernels[place] = ActiveKernel(
            1, handle, 0, start_ps, blocks, 0, -1, 0, warps_per_block, threads_per_block, registers_per_block,
            shared_per_block)
        return True

    def add_chunk(self, int handle, const uint8_t[::1] blocks, const uint8_t[::1] warps, const uint8_t[::1] ops,
                  const uint64_t[::1] lines, const int64_t[:, ::1] table):
        """Gives a kernel its next chunk.

        Parameters
        ----------
        handle : of the kernel
        blocks, warps, ops : records as bytes
        lines : uint64 (n,), (address >> 7) << 8 | masks
        table : int64 (allocations, 3), sorted: first line, end line, entry of the first line (`Layout.live_table`)

        Returns
        -------
        index of the first line that is in no allocation, or -1; the kernel has no chunk where there is one
        """
        cdef int64_t place = self.free_chunk
        cdef int64_t n_warps = warps.shape[0] // <int64_t>sizeof(WarpRecord), n_ops = ops.shape[0] // <int64_t>sizeof(WarpOp)
        cdef int64_t outside = -1
        cdef Chunk* grown
        cdef Chunk* chunk
        if place < 0:
            grown = <Chunk*>realloc(self.chunks, <size_t>(self.n_chunks + 1) * sizeof(Chunk))
            if not grown:
                raise MemoryError("too many chunks are in use")
            self.chunks = grown
            place = self.free_chunk = self.n_chunks
            memset(&grown[place], 0, sizeof(Chunk))
            grown[place].next_free = -1
            self.n_chunks += 1
            self.held.append(None)
        chunk = &self.chunks[place]
        stream_reserve(&chunk.streams, n_warps, n_ops, lines.shape[0])
        if n_warps:
            with nogil:
                outside = stream_fill(&chunk.streams, &self.core, &self.m, &self.l1.cache, <const WarpRecord*>&warps[0], n_warps,
                                      <const WarpOp*>&ops[0] if n_ops else NULL, &lines[0] if lines.shape[0] else NULL, table)
        if outside >= 0:
            return outside
        self.free_chunk = chunk.next_free
        self.held[place] = blocks
        chunk.n_blocks = chunk.blocks_left = blocks.shape[0] // <int64_t>sizeof(BlockRecord)
        chunk.blocks = <const BlockRecord*>&blocks[0]
        for kernel in range(self.n_kernels):
            if self.kernels[kernel].used and self.kernels[kernel].handle == handle:
                self.kernels[kernel].chunk, self.kernels[kernel].next_block = place, 0
        return -1

    def run(self, int64_t operations):
        """Simulates until something is needed.

        Returns
        -------
        tuple of a word (`"idle"`, `"pause"`, `"chunk"`, `"done"`) and the kernel's handle (-1 where none)
        """
        cdef Stop stop
        self.stop_kernel = -1
        with nogil:
            stop = self.loop(operations)
        self.release_chunks()
        words = {STOP_IDLE: "idle", STOP_PAUSE: "pause", STOP_CHUNK: "chunk", STOP_DONE: "done"}
        handle = self.kernels[self.stop_kernel].handle if self.stop_kernel >= 0 else -1
        if stop == STOP_DONE:
            self.kernels[self.stop_kernel].used = 0
        return words[stop], handle

    cdef void release_chunks(self):
        cdef int64_t place
        for place in range(self.n_chunks):
            if self.held[place] is not None and self.chunks[place].blocks_left == 0:
                self.held[place] = None
                self.chunks[place].next_free = self.free_chunk
                self.free_chunk = <int>place

    # The loop

    cdef Stop loop(self, int64_t operations) noexcept nogil:
        cdef int leaf, sm, position, place
        cdef int64_t now, finish, busy_ps
        cdef Scheduler* scheduler
        cdef Warp* warp
        cdef Pending* later
        cdef Stop stop
        memset(&self.ahead, 0, sizeof(LookAhead))      # what it points to may be gone since the last call
        if self.refill:
            stop = self.dispatch_everywhere()
            if stop != STOP_IDLE:
                return stop
        while True:
            now = key_time(self.events.first, self.events.bits)
            place = self.next_start(now) if self.n_waiting else -1
            if place >= 0:
                self.n_waiting -= 1
                self.now_ps = larger(self.now_ps, self.kernels[place].start_ps)
                self.kernels[place].started = 1
                self.invalidate_l1s()
                stop = self.dispatch_everywhere()
                if stop != STOP_IDLE:
                    return stop
                continue
            if now == NEVER:
                return STOP_IDLE
            leaf = key_number(self.events.first, self.events.bits)
            self.now_ps = now
            scheduler = &self.schedulers[leaf]
            sm = <int>(<unsigned int>leaf / <unsigned int>self.n_schedulers)
            position = scheduler_pick(scheduler, now, self.core.round_robin)
            events_take(&self.events, leaf)
            scheduler_take(scheduler, position)
            warp = &self.warps[sm * MAX_WARPS + scheduler.slot[position]]
            if warp.slots:              # the instructions before this one have taken issue slots, as early as they could
                finish = larger(scheduler.slots_free_ps, now - warp.op.chain_ps)
                finish += warp.slots * self.core.cycle_ps
                # A busy unit holds up those that come after, not this operation, whose chain has the warp's own waits for it.
                busy_ps = warp.op.unit_slots * self.core.cycle_ps
                scheduler.slots_free_ps = finish + busy_ps
                self.warp_instructions += warp.slots
                self.issue_busy_ps += warp.slots * self.core.cycle_ps + busy_ps
                warp.slots = 0
                if finish - self.core.cycle_ps > now:
                    scheduler_put(scheduler, position, finish - self.core.cycle_ps)
                    events_put(&self.events, leaf, scheduler_time(scheduler))
                    continue
            if warp.op.kind == OP_END:
                stop = self.exit_warp(leaf, sm, position, warp, now)
                if stop != STOP_IDLE:
                    return stop
                continue
            scheduler.next_issue_ps = now + self.core.cycle_ps
            scheduler.greedy = position
            if warp.op.kind == OP_BARRIER:
                self.reach_barrier(leaf, position, warp, now)
                events_set(&self.events, leaf, scheduler_time(scheduler))
            else:
                later = self.later + warp.number * MAX_LATER
                warp_access(&self.l1, &self.m, warp, later, sm, now)
                scheduler_put(scheduler, position, warp_next(warp, later))
                operations -= 1
                events_put(&self.events, leaf, scheduler_time(scheduler))
            look_ahead(&self.ahead, scheduler, self.warps + sm * MAX_WARPS, &self.l1, &self.m)
            if operations <= 0:
                return STOP_PAUSE

    cdef int next_start(self, int64_t before) noexcept nogil:
        """The kernel that starts first, no later than `before`; -1 where none does."""
        cdef int place, first = -1
        for place in range(self.n_kernels):
            if self.kernels[place].used and not self.kernels[place].started and self.kernels[place].start_ps <= before:
                if first < 0 or self.kernels[place].start_ps < self.kernels[first].start_ps:
                    first = place
        return first

    cdef void invalidate_l1s(self) noexcept nogil:
        cdef int sm
        for sm in range(self.n_sms):
            if self.l1.sms[sm].used:
                cache_clear_unit(&self.l1.cache, sm)
                self.l1.sms[sm].used = 0

    cdef bint fits(self, const ActiveKernel* kernel, int sm) noexcept nogil:
        cdef const Room* room = &self.rooms[sm]
        return (room.blocks > 0 and room.threads >= kernel.threads_per_block
                and room.registers >= kernel.registers_per_block and room.shared >= kernel.shared_per_block
                and bits_set(room.free_slots) >= kernel.warps_per_block)

    cdef Stop dispatch_everywhere(self) noexcept nogil:
        """Puts thread blocks wherever there is room, SM after SM, the kernel that started first before the others."""
        cdef int place, best, tried
        cdef Stop stop
        cdef uint64_t[2] seen
        seen[0] = seen[1] = 0
        self.refill = 0
        while True:
            best = -1
            for place in range(self.n_kernels):
                if (self.kernels[place].used and self.kernels[place].started and self.kernels[place].blocks_left
                        and not seen[place >> 6] >> (place & 63) & 1):
                    if best < 0 or self.kernels[place].start_ps < self.kernels[best].start_ps:
                        best = place
            if best < 0:
                return self.finished_kernel()
            seen[best >> 6] |= <uint64_t>1 << (best & 63)
            tried = 0
            while self.kernels[best].blocks_left and tried < self.n_sms:
                if self.fits(&self.kernels[best], self.next_sm):
                    stop = self.dispatch(best, self.next_sm)
                    if stop != STOP_IDLE:
                        return stop
                    tried = 0
                else:
                    tried += 1
                self.next_sm = self.next_sm + 1 if self.next_sm + 1 < self.n_sms else 0

    cdef Stop dispatch_to(self, int sm) noexcept nogil:
        """Puts thread blocks on one SM, where room has appeared."""
        cdef int place, best = 0
        cdef Stop stop
        while best >= 0:
            best = -1
            for place in range(self.n_kernels):
                if (self.kernels[place].used and self.kernels[place].started and self.kernels[place].blocks_left
                        and self.fits(&self.kernels[place], sm)):
                    if best < 0 or self.kernels[place].start_ps < self.kernels[best].start_ps:
                        best = place
            if best >= 0:
                stop = self.dispatch(best, sm)
                if stop != STOP_IDLE:
                    return stop
        return self.finished_kernel()

    cdef Stop finished_kernel(self) noexcept nogil:
        """A kernel all of whose blocks have ended (or that has none) is reported."""
        cdef int place
        for place in range(self.n_kernels):
            if (self.kernels[place].used == 1 and self.kernels[place].started and not self.kernels[place].blocks_left
                    and not self.kernels[place].blocks_running):
                self.kernels[place].used = 2
                self.stop_kernel = place
                return STOP_DONE
        return STOP_IDLE

    cdef Stop dispatch(self, int place, int sm) noexcept nogil:
        """Starts a kernel's next thread block on an SM that has room for it."""
        cdef ActiveKernel* kernel = &self.kernels[place]
        cdef Room* room = &self.rooms[sm]
        cdef Chunk* chunk
        cdef const BlockRecord* record
        cdef ResidentBlock* block
        cdef Warp* warp
        cdef Scheduler* scheduler
        cdef int number, slot, i
        cdef int64_t start
        if kernel.chunk >= 0 and kernel.next_block == self.chunks[kernel.chunk].n_blocks:
            kernel.chunk = -1
        if kernel.chunk < 0:
            self.refill = 1
            self.stop_kernel = place
            return STOP_CHUNK
        chunk = &self.chunks[kernel.chunk]
        record = &chunk.blocks[kernel.next_block]
        kernel.next_block += 1
        kernel.blocks_left -= 1
        if record.n_warps == 0:
            chunk.blocks_left -= 1
            return STOP_IDLE
        kernel.blocks_running += 1
        number = self.free_block
        block = &self.blocks[number]
        self.free_block = block.next_free
        block.kernel, block.chunk = place, kernel.chunk
        block.warps_left, block.at_barrier = <int>record.n_warps, 0
        room.blocks -= 1
        room.threads -= kernel.threads_per_block
        room.registers -= kernel.registers_per_block
        room.shared -= kernel.shared_per_block
        start = larger(self.now_ps, room.next_block_ps)
        room.next_block_ps = start + self.block_interval_ps
        start += self.block_latency_ps
        for i in range(<int>record.n_warps):
            slot = lowest_bit(room.free_slots)
            room.free_slots &= room.free_slots - 1
            warp = &self.warps[sm * MAX_WARPS + slot]
            warp.op = <const StreamOp*>(chunk.streams.ops + chunk.streams.starts[record.first_warp + i])
            warp.v_ps = 0
            warp.shift_ps = start
            warp.last_arrival_ps = start
            warp.block = number
            warp.n_pending = warp.at_barrier = 0
            scheduler = &self.schedulers[sm * self.n_schedulers + slot % self.n_schedulers]
            scheduler_add(scheduler, slot, warp_next(warp, self.later + warp.number * MAX_LATER))
        for i in range(sm * self.n_schedulers, (sm + 1) * self.n_schedulers):
            events_set(&self.events, i, scheduler_time(&self.schedulers[i]))
        return STOP_IDLE

    cdef Stop exit_warp(self, int leaf, int sm, int position, Warp* warp, int64_t now) noexcept nogil:
        cdef Scheduler* scheduler = &self.schedulers[leaf]
        cdef ResidentBlock* block = &self.blocks[warp.block]
        cdef ActiveKernel* kernel = &self.kernels[block.kernel]
        cdef Room* room = &self.rooms[sm]
        room.free_slots |= <uint64_t>1 << scheduler.slot[position]
        scheduler_remove(scheduler, position)
        events_set(&self.events, leaf, scheduler_time(scheduler))
        block.warps_left -= 1
        if block.warps_left:
            if block.at_barrier == block.warps_left:
                self.open_barrier(sm, warp.block, now)
            return STOP_IDLE
        self.chunks[block.chunk].blocks_left -= 1
        room.blocks += 1
        room.threads += kernel.threads_per_block
        room.registers += kernel.registers_per_block
        room.shared += kernel.shared_per_block
        kernel.blocks_running -= 1
        block.next_free = self.free_block
        self.free_block = warp.block
        if kernel.blocks_running == 0 and kernel.blocks_left == 0:
            self.stop_kernel = block.kernel
            kernel.used = 2
            self.refill = self.n_kernels > 1
            return STOP_DONE
        return self.dispatch_to(sm)

    cdef void reach_barrier(self, int leaf, int position, Warp* warp, int64_t now) noexcept nogil:
        cdef ResidentBlock* block = &self.blocks[warp.block]
        warp_passed(warp, now)
        warp.at_barrier = 1
        scheduler_set(&self.schedulers[leaf], position, NEVER)
        block.at_barrier += 1
        self.m.count.memory_instructions += 1
        if block.at_barrier == block.warps_left:
            self.open_barrier(leaf // self.n_schedulers, warp.block, now)

    cdef void open_barrier(self, int sm, int number, int64_t now) noexcept nogil:
        """Every warp of a block has come to its barrier."""
        cdef Scheduler* scheduler
        cdef Warp* warp
        cdef int leaf, position
        self.blocks[number].at_barrier = 0
        for leaf in range(sm * self.n_schedulers, (sm + 1) * self.n_schedulers):
            scheduler = &self.schedulers[leaf]
            for position in range(scheduler.n):
                warp = &self.warps[sm * MAX_WARPS + scheduler.slot[position]]
                if warp.block == number and warp.at_barrier:
                    warp.at_barrier = 0
                    warp.shift_ps = larger(warp.shift_ps, now + self.core.barrier_ps - warp.v_ps)
                    scheduler_set(scheduler, position, warp_next(warp, self.later + warp.number * MAX_LATER))
            events_set(&self.events, leaf, scheduler_time(scheduler))

    def end_of_time_ps(self):
        """The time that a run can't go past, if a warp would have to: one that waits for no barrier and yet has no turn.

        Returns
        -------
        int, or None
        """
        cdef int i, position
        cdef Scheduler* scheduler
        for i in range(self.n_sms * self.n_schedulers):
            scheduler = &self.schedulers[i]
            for position in range(scheduler.n):
                if not self.warps[i // self.n_schedulers * MAX_WARPS + scheduler.slot[position]].at_barrier:
                    return self.events.end_ps
        return None

    # Events between kernels

    def advance_to(self, int64_t now_ps):
        """Lets time pass with nothing running."""
        self.now_ps = max(self.now_ps, now_ps)

    def fill_l2(self, int64_t first_entry, int64_t end_entry):
        """Makes the L2 hold what a copy or fill has written: whole lines, clean."""
        cdef int64_t entry
        cdef Spot spot
        cdef Row row
        cdef int64_t way
        cdef uint32_t left
        cdef MemorySystem* m = &self.m
        with nogil:
            m.now_ps = m.dram.now_ps = self.now_ps
            for entry in range(first_entry, end_entry):
                l2_spot(m, <uint32_t>entry, &spot)
                row = cache_row(&m.l2, spot.set)
                way = cache_find(&m.l2, &row, <uint32_t>entry)
                if way < 0:
                    way = cache_replace(&m.l2, &row, <uint32_t>entry, &left)
                    evict_line(m, &m.slices[spot.slice], left, row.lines[way], self.now_ps)
                else:
                    cache_touch(&m.l2, &row, way)
                row.lines[way] = 15

    def drop_l2(self, int64_t first_entry, int64_t end_entry):
        """Forgets what the L2 holds of entries that a copy or fill has overwritten in memory."""
        cdef int64_t entry
        cdef Spot spot
        cdef Row row
        cdef int64_t way
        cdef MemorySystem* m = &self.m
        with nogil:
            for entry in range(first_entry, end_entry):
                l2_spot(m, <uint32_t>entry, &spot)
                row = cache_row(&m.l2, spot.set)
                way = cache_find(&m.l2, &row, <uint32_t>entry)
                if way >= 0:
                    m.count.overwritten_sectors += bits_set(row.lines[way] >> DIRTY & 15)
                    row.lines[way] = 0

    # Results

    @property
    def memory_instructions(self):
        """Memory instructions carried out so far."""
        return self.m.count.memory_instructions

    def counters(self):
        """Every counter so far.

        Returns
        -------
        dict of int, and lists of int for what is counted by traffic kind or histogram bin
        """
        cdef MemorySystem* m = &self.m
        cdef dict result = dict(m.count)
        result["warp_instructions"] = self.warp_instructions
        result["issue_busy_ps"] = self.issue_busy_ps
        result["now_ps"] = self.now_ps
        result["loads_missed"] = sum(result["load_histogram"])
        for name in ("load_histogram", "memory_histogram"):
            result[name][SHOWN_BINS - 1:] = [sum(result[name][SHOWN_BINS - 1:])]
        result["l2_reads"] = m.count.l2_read_hits + m.count.l2_read_merged + m.count.demanded
        result["link_read_total_bytes"], result["link_write_total_bytes"] = m.link.read_bytes, m.link.write_bytes
        for name in ("bursts", "row_hits", "row_misses", "queued_bursts"):
            result[f"dram_{name}"] = [channel[name] for channel in self.channels()]
        result["regions"] = [
            (m.regions[i].fills, m.regions[i].writebacks, m.regions[i].buddy) for i in range(m.n_regions)
        ]
        result["fills"], result["writebacks"], _ = (sum(of_all) for of_all in zip(*result["regions"], strict=True))
        result["scheme"] = self.scheme.counters(m)
        result["metadata_accesses"] = m.count.metadata_hits + m.count.device[<int>METADATA_READ] // m.metadata_sectors
        return result

    def channels(self):
        """State of each pseudo-channel.

        Returns
        -------
        list of dict
        """
        cdef int i
        return [
            {
                "bursts": self.m.dram.pseudo[i].bursts,
                "row_hits": self.m.dram.pseudo[i].row_hits,
                "row_misses": self.m.dram.pseudo[i].row_misses,
                "queued_bursts": self.m.dram.pseudo[i].queued_bursts,
            }
            for i in range(self.m.dram.n_pseudo)
        ]

    def places(self, entries, bint eight_at_a_time):
        """Where an operation's lines lie, found eight at a time (where the host can) or one by one: the same.

        Parameters
        ----------
        entries : at most 255 entry numbers
        eight_at_a_time : which of the two

        Returns
        -------
        list of dict: for each line numbers of entry, slice and rows, and offsets in the engine's arrays, as in `places.h`
        """
        cdef MemorySystem* m = &self.m
        cdef LinePlace[256] lines
        cdef uint64_t[256] words
        cdef bint possible = m.eight_at_a_time
        cdef int i, n = len(entries)
        for i in range(n):
            words[i] = <uint64_t>(<uint32_t>entries[i]) << 8 | i
        m.eight_at_a_time = possible and eight_at_a_time
        locate_lines(m, &self.l1.cache, words, n, lines)
        m.eight_at_a_time = possible
        return [
            {
                "entry": lines[i].entry, "masks": lines[i].masks, "slice": lines[i].slice, "l1_set": lines[i].l1_set,
                "l2_set": lines[i].l2_set, "bank": lines[i].bank, "row": lines[i].row,
                "metadata_set": lines[i].metadata_set, "metadata_bank": lines[i].metadata_bank,
                "metadata_row": lines[i].metadata_row,
            }
            for i in range(n)
        ]

    def dirty_sectors(self):
        """Dirty sectors that the L2 holds.

        Returns
        -------
        int
        """
        cdef int64_t set, total = 0
        cdef uint32_t way
        cdef MemorySystem* m = &self.m
        for set in range(<int64_t>m.l2.units * m.l2.sets.by):
            for way in range(m.l2.ways):
                total += bits_set(cache_row(&m.l2, <uint32_t>set * m.l2.row_bytes).lines[way] >> DIRTY & 15)
        return total
