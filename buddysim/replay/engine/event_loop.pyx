"""The event loop, in which warps issue, and the engine as the driver sees it.

The loop runs without the GIL and allocates no memory. It returns to Python when a kernel needs its next chunk, when a kernel has
completed, and after a number of operations, so that the driver can report progress and users can interrupt the run.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

cimport cython

from buddysim.replay.engine.arrival_order cimport issue_in_arrival_order, next_arrival_event
from buddysim.replay.engine.copies cimport (
    copy_sectors, l2_invalidate_range, l2_install, l2_max_installed, l2_update_class,
)
from buddysim.replay.l2.l2 cimport l2_dirty_sectors
from buddysim.replay.memory.allocations cimport allocation_begin, allocation_end, allocation_of_line, allocation_materialize
from buddysim.replay.memory.memory cimport MemorySystem, AllocationState, memory_init, count_waits_in
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.arena cimport arena_zeroed
from buddysim.replay.primitives.compiler_hints cimport prefetch, unlikely
from buddysim.replay.primitives.events cimport (
    GROUP_BITS, KEY_NEVER, NEVER, events_insert, events_set, events_remove, key_number, key_time, min_key,
)
from buddysim.replay.primitives.extremes cimport max_i64, min_i64
from buddysim.replay.primitives.kinds cimport (
    HISTOGRAM_BINS, L1_MSHR, L1_PORT, L1_STORE, L2_MSHR, QUEUES, REPLY_PORT, SCHEME_QUEUE, WRITEBACK,
)
from buddysim.replay.primitives.versions cimport cpu_is_newer, int64_on_newer
from buddysim.replay.schemes.base cimport SchemeBase
from buddysim.replay.sm.arrival_order cimport arrival_order_init
from buddysim.replay.sm.host_prefetch cimport HostPrefetcher, locate_lines, prefetch_ahead
from buddysim.replay.sm.instruction_cache cimport KernelCode, kernel_code_free, kernel_code_init
from buddysim.replay.sm.issue_order cimport Scheduler, scheduler_pick, scheduler_resume, scheduler_suspend, scheduler_time
from buddysim.replay.sm.memory_instruction cimport warp_access
from buddysim.replay.sm.stream cimport (
    FILL_DONE, FILL_SIZES, MANY_LINES, OP_END, FillStop, conflict_lines, stream_fill, stream_reserve, unit_ps,
)
from buddysim.replay.sm.thread_blocks cimport (
    EXIT_CHUNK, EXIT_DONE, EXIT_IDLE, EXIT_PAUSE, ActiveKernel, ChunkState, RunState, LoopExit, chunk_assign, chunk_release,
    chunk_reserve, kernel_add, kernel_start, next_start, reach_barrier, resume_dispatch, retire_warp, run_state_free,
    run_state_init, waits_for_code,
)
from buddysim.replay.sm.warp cimport MAX_OTHER_PENDING, MAX_WARPS, PendingLoad, Warp, warp_next
from buddysim.trace.records cimport OP_BARRIER, BlockRecord, WarpOp, WarpRecord

cdef enum:
    SHOWN_BINS = 40  # of a histogram of times; the last bin counts all longer times


cdef inline int64_t reserve_issue_slots(RunState* g, Scheduler* scheduler, Warp* warp, int64_t now) noexcept nogil:
    """Takes the issue slots of a warp's compute gap, as early as possible; returns the end of the last (ps)."""
    cdef int64_t gap_start_ps = now - warp.op.gap_latency_ps
    cdef int64_t finish = max_i64(scheduler.issue_slots_free_ps, gap_start_ps) + warp.issue_slots * g.core.cycle_ps
    # A busy unit delays later operations. The latency of its compute gap includes the warp's own waits.
    cdef int64_t busy_ps = unit_ps(&g.core, warp.op)
    if unlikely(g.core.stall_on_busy_unit) and scheduler.issue_slots_free_ps > gap_start_ps:     # it has waited
        finish += busy_ps
        scheduler.issue_slots_free_ps = finish
    else:
        scheduler.issue_slots_free_ps = finish + busy_ps
    g.warp_instructions += warp.issue_slots
    g.issue_busy_ps += warp.issue_slots * g.core.cycle_ps + busy_ps
    warp.issue_slots = 0
    return finish


cdef inline void predict_next_scheduler(RunState* g, HostPrefetcher* prefetcher, int scheduler_number) noexcept nogil:
    """Predicts the scheduler that issues after number `scheduler_number`, which is not in the order of events."""
    cdef int64_t key = min_i64(min_key(g.events.firsts, g.events.groups),
                               min_key(g.events.keys + (scheduler_number >> GROUP_BITS << GROUP_BITS), 1 << GROUP_BITS))
    cdef int i
    prefetcher.next = NULL
    if key != KEY_NEVER:
        scheduler_number = key_number(key, g.events.bits)
        prefetcher.next = &g.schedulers[scheduler_number]
        prefetcher.next_sm = <int>(<unsigned int>scheduler_number / <unsigned int>g.n_schedulers)
        prefetcher.next_warps = g.warps + prefetcher.next_sm * MAX_WARPS
        prefetch(prefetcher.next)
        prefetch(prefetcher.next.slot)
        for i in range(0, prefetcher.next.n, 8):
            prefetch(&prefetcher.next.ready[i])


cdef class ReplayEngine:
    """The state of one run.

    Parameters
    ----------
    numbers : dict of int
        parameters of the machine in ps, bytes and counts (`parameters.engine_numbers`)
    allocations : int64 array (n, 4)
        first entry, end entry, placement, device sectors of each allocation; none is live yet
    entry_classes : uint8 array (entries,)
        size class of each entry, which the engine changes, | class after a store << 4 (`set_writer_launches`)
    scheme : SchemeBase
        the scheme, configured for the machine
    policies : dict of str to object
        an instance of each policy that the machine chooses, by its kind (`Machine.policies`); of this run alone, as the scheme is
    queueing : bool
        counts how long requests wait at each kind of resource
    exact_order : bool
        lines reach the L1 and the L2 in the order of their arrival, not of their issue
    """

    cdef RunState state
    cdef HostPrefetcher prefetcher
    cdef list held              # keeps the blocks of a chunk alive
    cdef SchemeBase scheme
    cdef dict policies
    cdef object keep

    def __cinit__(self, dict numbers, allocations, entry_classes, SchemeBase scheme, dict policies, bint queueing=False,
                  bint exact_order=False):
        cdef int64_t* waits = NULL
        self.scheme, self.policies = scheme, policies
        self.held = []
        run_state_init(&self.state, numbers, policies)
        self.state.m.fill, self.state.m.writeback = scheme.fill, scheme.writeback
        self.state.m.on_access, self.state.m.may_cache = scheme.on_access, scheme.may_cache
        self.state.m.on_wake, self.state.m.on_written = scheme.on_wake, scheme.on_written
        self.state.m.on_due = scheme.on_due
        self.state.m.due_ps = NEVER
        self.keep = memory_init(&self.state.arena, &self.state.m, &self.state.l1.cache, numbers, allocations, entry_classes,
                                policies, scheme.uses_sizes)
        if queueing:
            waits = <int64_t*>arena_zeroed(&self.state.arena, QUEUES * HISTOGRAM_BINS, sizeof(int64_t))
        count_waits_in(&self.state.m, waits)
        self.state.order.first_ps = NEVER
        if exact_order:
            arrival_order_init(&self.state.order, &self.state.arena, self.state.n_sms, self.state.n_schedulers)
        scheme.prepare(&self.state.m, &self.state.arena)

    def __dealloc__(self):
        run_state_free(&self.state)

    # Kernels and chunks

    def start_kernel(self, int handle, int64_t start_ps, int64_t blocks, int warps_per_block, int threads_per_block,
                     int64_t registers_per_block, int64_t shared_per_block, int64_t code_bytes=0):
        """Adds a kernel, whose thread blocks are dispatched from `start_ps` on; False if the maximum number of them is running."""
        cdef ActiveKernel kernel = ActiveKernel(
            1, handle, 0, start_ps, blocks, 0, -1, 0, warps_per_block, threads_per_block, registers_per_block, shared_per_block, 0,
            KernelCode(NULL, NULL, 0), 0, -1)
        kernel_code_init(&self.state.code, &kernel.code, self.state.n_sms, code_bytes)
        if not kernel_add(&self.state, &kernel):
            kernel_code_free(&kernel.code)
            return False
        return True

    def add_chunk(self, int handle, const uint8_t[::1] blocks, const uint8_t[::1] warps, const uint8_t[::1] ops,
                  const uint64_t[::1] lines, uint64_t launch_index):
        """Gives a kernel its next chunk.

        Parameters
        ----------
        handle : of the kernel
        blocks, warps, ops : records as bytes
        lines : uint64 (n,), (address >> 7) << 8 | masks
        launch_index : of the kernel; it selects the size classes after its stores

        Returns
        -------
        tuple of a word and a number: `"taken"`; `"outside"` and the index of a line in no live allocation; `"sizes"` and an
        allocation to which the kernel stores, and whose size classes are those after other launches (`set_writer_launches`).
        The kernel has no new chunk unless the word is `"taken"`.
        """
        cdef RunState* g = &self.state
        cdef int64_t index = chunk_reserve(g), number = -1, repeated
        cdef FillStop stop = FILL_DONE
        cdef int64_t n_warps = warps.shape[0] // <int64_t>sizeof(WarpRecord), n_ops = ops.shape[0] // <int64_t>sizeof(WarpOp)
        cdef ChunkState* chunk = &g.chunks[index]
        while len(self.held) < g.n_chunks:
            self.held.append(None)
        repeated = conflict_lines(&g.core, <const WarpOp*>&ops[0], n_ops) if n_ops else 0
        stream_reserve(&chunk.streams, n_warps, n_ops, lines.shape[0] + repeated)
        if n_warps:
            with nogil:
                stop = stream_fill(&chunk.streams, &g.core, &g.m, &g.l1.cache, <const WarpRecord*>&warps[0], n_warps,
                                   <const WarpOp*>&ops[0] if n_ops else NULL, &lines[0] if lines.shape[0] else NULL, launch_index,
                                   &number)
        if stop != FILL_DONE:
            return "sizes" if stop == FILL_SIZES else "outside", number
        self.held[index] = blocks
        chunk.n_blocks = chunk.blocks_left = blocks.shape[0] // <int64_t>sizeof(BlockRecord)
        chunk.blocks = <const BlockRecord*>&blocks[0]
        chunk_assign(g, index, handle)
        return "taken", -1

    def run(self, int64_t operations):
        """Simulates until the driver must act.

        Returns
        -------
        tuple of a word (`"idle"`, `"pause"`, `"chunk"`, `"done"`) and the kernel's handle; -1: none
        """
        cdef RunState* g = &self.state
        cdef LoopExit stop
        g.exit_kernel = -1
        with nogil:
            stop = <LoopExit>self.loop_newer_cpu(operations) if cpu_is_newer() else self.loop_generic(operations)
        self.release_chunks()
        if g.order.failed:
            raise MemoryError("too many requests are in flight")
        words = {EXIT_IDLE: "idle", EXIT_PAUSE: "pause", EXIT_CHUNK: "chunk", EXIT_DONE: "done"}
        handle = g.kernels[g.exit_kernel].handle if g.exit_kernel >= 0 else -1
        if stop == EXIT_DONE:
            g.kernels[g.exit_kernel].used = 0
            kernel_code_free(&g.kernels[g.exit_kernel].code)
        return words[stop], handle

    cdef void release_chunks(self):
        cdef int64_t index
        for index in range(self.state.n_chunks):
            if self.held[index] is not None and self.state.chunks[index].blocks_left == 0:
                self.held[index] = None
                chunk_release(&self.state, index)

    # The loop

    @cython.final
    cdef LoopExit loop_generic(self, int64_t operations) noexcept nogil:
        return self.loop(operations)

    @cython.final
    cdef int64_on_newer loop_newer_cpu(self, int64_t operations) noexcept nogil:
        return self.loop(operations)

    @cython.final
    cdef inline LoopExit loop(self, int64_t operations) noexcept nogil:
        cdef RunState* g = &self.state
        cdef int scheduler_number, sm, position, kernel
        cdef int64_t now, finish, first_ps
        cdef Scheduler* scheduler
        cdef Warp* warp
        cdef PendingLoad* other_pending
        cdef LoopExit stop
        memset(&self.prefetcher, 0, sizeof(HostPrefetcher))      # its pointers may be stale after the last call
        stop = resume_dispatch(g)
        if stop != EXIT_IDLE:
            return stop
        while True:
            now = key_time(g.events.first, g.events.bits)
            first_ps = min_i64(now, g.order.first_ps)
            kernel = next_start(g, first_ps) if g.n_waiting else -1
            if kernel >= 0:
                stop = kernel_start(g, kernel)
                if stop != EXIT_IDLE:
                    return stop
                continue
            if unlikely(g.order.used) and g.order.first_ps == first_ps and first_ps != NEVER:
                if g.order.failed:
                    return EXIT_PAUSE
                next_arrival_event(g)
                continue
            if now == NEVER:
                return EXIT_IDLE
            scheduler_number = key_number(g.events.first, g.events.bits)
            g.now_ps = now
            while unlikely(now > g.m.due_ps):
                g.m.on_due(&g.m)
            scheduler = &g.schedulers[scheduler_number]
            sm = <int>(<unsigned int>scheduler_number / <unsigned int>g.n_schedulers)
            position = scheduler_pick(scheduler, now, g.pick)
            events_remove(&g.events, scheduler_number)
            scheduler_suspend(scheduler, position)
            warp = &g.warps[sm * MAX_WARPS + scheduler.slot[position]]
            if warp.issue_slots:
                if unlikely(g.code.code_ready != NULL) and waits_for_code(g, scheduler_number, sm, position, warp, now):
                    continue
                finish = reserve_issue_slots(g, scheduler, warp, now)
                if finish - g.core.cycle_ps > now:
                    scheduler_resume(scheduler, position, finish - g.core.cycle_ps)
                    events_insert(&g.events, scheduler_number, scheduler_time(scheduler))
                    continue
            if unlikely(g.m.on_wake != NULL):
                g.m.warp = warp.number
                g.m.horizon.now_ps = now
                finish = g.m.on_wake(&g.m, warp.number, warp.op.kind == OP_END, now)
                if finish > now:
                    scheduler_resume(scheduler, position, finish)
                    events_insert(&g.events, scheduler_number, scheduler_time(scheduler))
                    continue
            if warp.op.kind == OP_END:
                stop = retire_warp(g, scheduler_number, sm, position, warp, now)
                if stop != EXIT_IDLE:
                    return stop
                continue
            scheduler.next_issue_ps = now + g.core.cycle_ps
            scheduler.last_issuer = position
            if warp.op.kind == OP_BARRIER:
                reach_barrier(g, scheduler_number, position, warp, now)
                events_set(&g.events, scheduler_number, scheduler_time(scheduler))
            elif unlikely(g.order.used):
                issue_in_arrival_order(g, &self.prefetcher, scheduler_number, sm, position, warp, now)
                operations -= 1
            else:
                other_pending = g.pending_loads + warp.number * MAX_OTHER_PENDING
                if warp.op.n_lines >= MANY_LINES:
                    predict_next_scheduler(g, &self.prefetcher, scheduler_number)
                warp_access(&g.l1, &g.m, &self.prefetcher, warp, other_pending, sm, g.pick, now)
                # If the queue of the L1 is full, its schedulers stop: requests are not reserved further ahead.
                scheduler.next_issue_ps = max_i64(scheduler.next_issue_ps, g.l1.sms[sm].free_ps - g.l1.queue_ps)
                scheduler_resume(scheduler, position, warp_next(warp, other_pending))
                operations -= 1
                events_insert(&g.events, scheduler_number, scheduler_time(scheduler))
            prefetch_ahead(&self.prefetcher, scheduler, g.warps + sm * MAX_WARPS, &g.l1, &g.m)
            if operations <= 0:
                return EXIT_PAUSE

    def end_of_time_ps(self):
        """The latest time that a run can represent, if a warp has passed it (no event, and at no barrier); else None."""
        cdef int i, position
        cdef Scheduler* scheduler
        for i in range(self.state.n_sms * self.state.n_schedulers):
            scheduler = &self.state.schedulers[i]
            for position in range(scheduler.n):
                if not self.state.warps[i // self.state.n_schedulers * MAX_WARPS + scheduler.slot[position]].at_barrier:
                    return self.state.events.end_ps
        return None

    # Events between kernels

    def begin_allocation(self, int allocation, uint64_t first_line, int64_t first_lazy_entry, int64_t end_lazy_entry):
        """Makes an allocation live.

        Parameters
        ----------
        allocation : number of the allocation
        first_line : address in the trace / 128
        first_lazy_entry, end_lazy_entry : entries that no access reaches before `materialize`
        """
        allocation_begin(&self.state.m, &self.state.m.allocations[allocation], first_line, first_lazy_entry, end_lazy_entry)

    def materialize(self, int allocation, int64_t first_entry, int64_t end_entry, bint live=True):
        """Makes entries of a lazy allocation accessible; or, with `live` false and before its end, inaccessible."""
        allocation_materialize(&self.state.m, &self.state.m.allocations[allocation], first_entry, end_entry, live)

    def end_allocation(self, int allocation):
        """Frees an allocation: invalidates its lines in the L2, without write-backs."""
        cdef MemorySystem* m = &self.state.m
        cdef AllocationState* freed = &m.allocations[allocation]
        cdef int64_t first = 4 * <int64_t>freed.first_entry
        with nogil:
            m.count.dirty_sectors_freed += l2_invalidate_range(m, first, first + 4 * <int64_t>freed.entries)
            allocation_end(m, freed)

    def allocation_of_line(self, uint64_t line):
        """Number of the live allocation that contains a line of the trace (address / 128); -1: none."""
        cdef const AllocationState* allocation = allocation_of_line(&self.state.m, line)
        return allocation - self.state.m.allocations if allocation else -1

    def set_writer_launches(self, int allocation, uint64_t first_launch, uint64_t last_launch):
        """Declares that the classes after stores of an allocation are those of these launches, first to last; none if reversed."""
        self.state.m.allocations[allocation].first_writer_launch = first_launch
        self.state.m.allocations[allocation].last_writer_launch = last_launch

    def overwrite(self, int64_t first_entry, int64_t end_entry, int64_t first_sector, int64_t end_sector, bint install):
        """Applies a memcpy or memset, after the entries that it wrote have got their new size classes.

        Parameters
        ----------
        first_entry, end_entry : entries of which it wrote at least a byte
        first_sector, end_sector : sectors that it wrote fully (4 x entry + index)
        install : the L2 holds these sectors afterwards, as far as they fit; otherwise none of them
        """
        cdef MemorySystem* m = &self.state.m
        with nogil:
            m.count.dirty_sectors_overwritten += l2_invalidate_range(m, first_sector, end_sector)
            if m.on_written != NULL:
                m.on_written(m, <uint32_t>first_entry, <uint32_t>end_entry)
            l2_update_class(m, <uint32_t>first_entry)
            l2_update_class(m, <uint32_t>(end_entry - 1))
            if install:
                l2_install(m, first_sector, end_sector, self.state.now_ps)

    def move(self, int64_t first_sector, int64_t end_sector, bint write, int64_t bytes_per_s):
        """Moves sectors of a memcpy or memset between a copy engine and memory, from now on; returns when the last has moved (ps).

        Parameters
        ----------
        first_sector, end_sector : sectors (4 x entry + index), of which it reads or writes at least a byte
        write : it writes them; else it reads them
        bytes_per_s : of the engine
        """
        cdef int64_t done_ps
        with nogil:
            done_ps = copy_sectors(&self.state.m, first_sector, end_sector, write, self.state.now_ps, bytes_per_s)
        return done_ps

    @property
    def max_installed_entries(self):
        """Maximum number of entries, from the end of a memcpy or memset, that the L2 may hold."""
        return l2_max_installed(&self.state.m)

    # Results

    @property
    def now_ps(self):
        """Simulated time."""
        return self.state.now_ps

    @property
    def memory_instructions(self):
        """Memory instructions simulated so far."""
        return self.state.m.count.memory_instructions

    def counters(self):
        """All counters so far: integers, and lists of them by traffic kind, pseudo-channel or histogram bin."""
        cdef MemorySystem* m = &self.state.m
        cdef dict result = dict(m.count)
        cdef list channels = self.channels()
        result["warp_instructions"] = self.state.warp_instructions
        result["issue_busy_ps"] = self.state.issue_busy_ps
        result["now_ps"] = self.state.now_ps
        result["pushed"] = m.horizon.pushed
        result["loads_missed"] = sum(result["load_histogram"])
        for name in ("bursts", "moved", "row_hits", "row_misses", "queued_bursts"):
            result[f"dram_{name}"] = [channel[name] for channel in channels]
        result["device"] = [sum(kind) for kind in zip(*result["dram_moved"], strict=True)]
        result["waits"] = self.waits(result) if m.waits.bins != NULL else None
        for bins in (result["load_histogram"], result["memory_histogram"], *(result["waits"] or ())):
            bins[SHOWN_BINS - 1:] = [sum(bins[SHOWN_BINS - 1:])]
        result["l2_reads"] = m.count.l2_read_hits + m.count.l2_read_mshr_merges + m.count.l2_read_misses
        result["link_read"], result["link_write"] = m.link.read_payload, m.link.write_payload
        result["link_read_total_bytes"], result["link_write_total_bytes"] = m.link.read_bytes, m.link.write_bytes
        result["allocations"] = [
            (m.allocations[i].fills, m.allocations[i].writebacks, m.allocations[i].overflow_accesses)
            for i in range(m.n_allocations)
        ]
        result["fills"], result["writebacks"], _ = (sum(column) for column in zip(*result["allocations"], strict=True))
        result["scheme"] = self.scheme.counters(m)
        return result

    def kernel_counters(self):
        """The counters that each kernel reports, without those of allocations."""
        cdef MemorySystem* m = &self.state.m
        cdef int64_t read = 0, written = 0
        cdef int channel, kind
        for channel in range(m.dram.n_pseudo):
            for kind in range(<int>WRITEBACK):
                read += m.dram.pseudo[channel].moved[kind]
            written += m.dram.pseudo[channel].moved[<int>WRITEBACK]
        return {
            "warp_instructions": self.state.warp_instructions,
            "memory_instructions": m.count.memory_instructions,
            "device_read_sectors": read,
            "device_write_sectors": written,
            "link_read_bytes": m.link.read_bytes,
            "link_write_bytes": m.link.write_bytes,
        }

    cdef list waits(self, dict counts):
        """Waits by queue and bin."""
        cdef int queue, bin
        cdef list waits = [
            [self.state.m.waits.bins[HISTOGRAM_BINS * queue + bin] for bin in range(HISTOGRAM_BINS)] for queue in range(QUEUES)
        ]
        loads = sum(waits[<int>REPLY_PORT])
        for queue, total in (       # these queues do not count requests that do not wait
            (L1_PORT, counts["line_accesses"]),
            (L1_MSHR, counts["loads_missed"]),
            (L1_STORE, counts["l2_lines"] - loads),
            (L2_MSHR, sum(counts["memory_histogram"])),
        ):
            waits[queue][0] += total - sum(waits[queue])
        for queue in range(len(self.scheme.QUEUES)):
            waits[SCHEME_QUEUE + queue][0] += self.scheme.requests(&self.state.m, queue) - sum(waits[SCHEME_QUEUE + queue])
        return waits

    def channels(self):
        """State of each pseudo-channel."""
        cdef int i
        return [
            {
                "bursts": sum(self.state.m.dram.pseudo[i].moved) - self.state.m.dram.pseudo[i].queued_bursts,
                "moved": self.state.m.dram.pseudo[i].moved,
                "row_hits": self.state.m.dram.pseudo[i].row_hits,
                "row_misses": self.state.m.dram.pseudo[i].row_misses,
                "queued_bursts": self.state.m.dram.pseudo[i].queued_bursts,
            }
            for i in range(self.state.m.dram.n_pseudo)
        ]

    def locations(self, entries, bint eight_at_a_time):
        """Locates the lines of an operation, for tests: eight at a time, if the CPU can, or one by one, with equal results.

        Parameters
        ----------
        entries : at most 255 entry numbers
        eight_at_a_time : selects the method

        Returns
        -------
        list of dict: the fields of `LineLocation` (`address_map_simd.pxd`)
        """
        cdef MemorySystem* m = &self.state.m
        cdef LineLocation[256] lines
        cdef uint64_t[256] words
        cdef bint possible = m.eight_at_a_time
        cdef int i, n = len(entries)
        for i in range(n):
            words[i] = <uint64_t>(<uint32_t>entries[i]) << 8 | i
        m.eight_at_a_time = possible and eight_at_a_time
        locate_lines(m, &self.state.l1.cache, words, n, lines)
        m.eight_at_a_time = possible
        return [lines[i] for i in range(n)]

    def dirty_sectors(self):
        """Number of dirty sectors in the L2."""
        return l2_dirty_sectors(&self.state.m)
