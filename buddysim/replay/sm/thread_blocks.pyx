"""Kernels, thread blocks and barriers: operations once per block or barrier."""
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from buddysim.replay.l1.l1 cimport l1s_init
from buddysim.replay.primitives.arena cimport arena_free, arena_zeroed
from buddysim.replay.primitives.cache cimport cache_clear_unit
from buddysim.replay.primitives.events cimport NEVER, events_init, events_insert, events_set
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.horizon cimport horizon_free
from buddysim.replay.sm.arrival_order cimport arrival_order_free
from buddysim.replay.sm.instruction_cache cimport icache_init, icache_start_warp, kernel_code_free
from buddysim.replay.sm.issue_order cimport (
    scheduler_add, scheduler_init, scheduler_remove, scheduler_resume, scheduler_set, scheduler_time,
)
from buddysim.replay.sm.scheduler.base cimport WarpSchedulerBase
from buddysim.replay.sm.stream cimport StreamOp, stream_free
from buddysim.replay.sm.warp cimport MAX_OTHER_PENDING, MAX_WARPS, warp_issued, warp_next

cdef extern from *:
    int bits_set "__builtin_popcountll"(unsigned long long x) noexcept nogil
    int lowest_bit "__builtin_ctzll"(unsigned long long x) noexcept nogil


cdef int run_state_init(RunState* g, dict n, dict policies) except -1:
    """Sets up the SMs of a machine (`parameters.engine_numbers`) and its policies; `memory_init` sets up the memory system."""
    g.free_chunk, g.resume_sm = -1, NOWHERE
    g.n_sms, g.n_schedulers, g.max_blocks = n["sms"], n["schedulers"], n["sm_blocks"]
    g.block_interval_ps, g.block_overhead_ps = n["block_interval_ps"], n["block_overhead_ps"]
    g.warp_interval_ps = n["warp_interval_ps"]
    g.barrier_arrival_interval_ps = n["barrier_arrival_interval_ps"]
    icache_init(&g.arena, &g.code, g.n_sms * MAX_WARPS, n)
    g.core = n
    l1s_init(&g.arena, &g.l1, g.n_sms, n, policies["L1 banking"])
    schedulers_init(g, policies["warp scheduler"])
    resources_init(g, n)
    return 0


cdef int schedulers_init(RunState* g, WarpSchedulerBase policy) except -1:
    """Creates schedulers without warps, and unused warps."""
    cdef int i, n = g.n_sms * g.n_schedulers
    g.pick = policy.pick
    g.schedulers = <Scheduler*>arena_zeroed(&g.arena, n, sizeof(Scheduler))
    g.warps = <Warp*>arena_zeroed(&g.arena, <size_t>g.n_sms * MAX_WARPS, sizeof(Warp))
    g.pending_loads = <PendingLoad*>arena_zeroed(&g.arena, <size_t>g.n_sms * MAX_WARPS * MAX_OTHER_PENDING, sizeof(PendingLoad))
    events_init(&g.arena, &g.events, n)
    for i in range(n):
        scheduler_init(&g.schedulers[i])
    for i in range(g.n_sms * MAX_WARPS):
        g.warps[i].number = i
    return 0


cdef int resources_init(RunState* g, dict n) except -1:
    """Creates the free resources of all SMs, and unused resident blocks."""
    cdef int i, slots = n["sm_warps"]
    cdef FreeSmResources resources
    resources.free_slots = ~<uint64_t>0 if slots >= 64 else (<uint64_t>1 << slots) - 1
    resources.blocks, resources.threads = g.max_blocks, n["sm_threads"]
    resources.registers, resources.shared = n["sm_registers"], n["sm_shared"]
    resources.next_block_ps = resources.next_barrier_ps = 0
    resources.l1_invalidated = 0
    g.free_resources = <FreeSmResources*>arena_zeroed(&g.arena, g.n_sms, sizeof(FreeSmResources))
    for i in range(g.n_sms):
        g.free_resources[i] = resources
    g.blocks = <ResidentBlock*>arena_zeroed(&g.arena, <size_t>g.n_sms * g.max_blocks, sizeof(ResidentBlock))
    for i in range(g.n_sms * g.max_blocks):
        g.blocks[i].next_free = i + 1
    g.blocks[g.n_sms * g.max_blocks - 1].next_free = -1
    if not n["exit_waits_for_stores"]:
        g.l1.stored_ps = <int64_t*>arena_zeroed(&g.arena, <size_t>g.n_sms * g.max_blocks, sizeof(int64_t))
    return 0


cdef void run_state_free(RunState* g) noexcept:
    """Frees the state, including the memory system."""
    cdef int64_t index
    for index in range(g.n_chunks):
        stream_free(&g.chunks[index].streams)
    for index in range(g.n_kernels):
        kernel_code_free(&g.kernels[index].code)
    free(g.chunks)
    horizon_free(&g.m.horizon)
    arrival_order_free(&g.order)
    arena_free(&g.arena)


cdef bint kernel_add(RunState* g, const ActiveKernel* kernel) noexcept:
    """Adds a kernel; False if `MAX_KERNELS` are running."""
    cdef int index
    for index in range(MAX_KERNELS):
        if not g.kernels[index].used:
            break
    else:
        return False
    if index >= g.n_kernels:
        g.n_kernels = index + 1
    g.n_waiting += 1
    g.kernels[index] = kernel[0]
    return True


cdef int64_t chunk_reserve(RunState* g) except -1:
    """Index of an unused chunk, which stays in the list of unused chunks."""
    cdef ChunkState* grown
    if g.free_chunk < 0:
        grown = <ChunkState*>realloc(g.chunks, <size_t>(g.n_chunks + 1) * sizeof(ChunkState))
        if not grown:
            raise MemoryError("too many chunks are in use")
        g.chunks = grown
        g.free_chunk = <int>g.n_chunks
        memset(&grown[g.n_chunks], 0, sizeof(ChunkState))
        grown[g.n_chunks].next_free = -1
        g.n_chunks += 1
    return g.free_chunk


cdef void chunk_assign(RunState* g, int64_t index, int handle) noexcept:
    """Removes the reserved chunk from the list of unused ones; the kernel takes its next thread blocks from it."""
    cdef int kernel
    g.free_chunk = g.chunks[index].next_free
    for kernel in range(g.n_kernels):
        if g.kernels[kernel].used and g.kernels[kernel].handle == handle:
            g.kernels[kernel].chunk, g.kernels[kernel].next_block = index, 0


cdef void chunk_release(RunState* g, int64_t index) noexcept:
    """Returns a chunk whose thread blocks have completed to the list of unused ones."""
    g.chunks[index].next_free = g.free_chunk
    g.free_chunk = <int>index


cdef bint precedes(const ActiveKernel* kernel, const ActiveKernel* other) noexcept nogil:
    """Whether a kernel starts before another one, or at the same time and was launched before it."""
    return kernel.start_ps < other.start_ps or (kernel.start_ps == other.start_ps and kernel.handle < other.handle)


cdef int next_start(RunState* g, int64_t before) noexcept nogil:
    """The kernel that starts first, at most at `before`; -1: none."""
    cdef int index, first = -1
    for index in range(g.n_kernels):
        if g.kernels[index].used and not g.kernels[index].started and g.kernels[index].start_ps <= before:
            if first < 0 or precedes(&g.kernels[index], &g.kernels[first]):
                first = index
    return first


cdef LoopExit kernel_start(RunState* g, int index) noexcept nogil:
    """Starts a kernel after its launch latency, and dispatches thread blocks."""
    g.n_waiting -= 1
    g.now_ps = max_i64(g.now_ps, g.kernels[index].start_ps)
    g.n_started += 1
    g.kernels[index].started = g.n_started
    return dispatch_everywhere(g)


cdef inline void invalidate_l1_for(RunState* g, const ActiveKernel* kernel, int sm) noexcept nogil:
    """Invalidates an SM's L1 for a thread block, unless it has been invalidated since the block's kernel started."""
    if g.free_resources[sm].l1_invalidated < kernel.started:
        g.free_resources[sm].l1_invalidated = g.n_started
        if g.l1.sms[sm].used:
            cache_clear_unit(&g.l1.cache, sm)
            g.l1.sms[sm].used = 0


cdef bint has_resources(RunState* g, const ActiveKernel* kernel, int sm) noexcept nogil:
    """Whether an SM has free resources for a thread block of a kernel."""
    cdef const FreeSmResources* resources = &g.free_resources[sm]
    return (resources.blocks > 0 and resources.threads >= kernel.threads_per_block
            and resources.registers >= kernel.registers_per_block and resources.shared >= kernel.shared_per_block
            and bits_set(resources.free_slots) >= kernel.warps_per_block)


cdef LoopExit resume_dispatch(RunState* g) noexcept nogil:
    """Continues an interrupted dispatch, if there is one."""
    cdef int sm = g.resume_sm
    g.resume_sm = NOWHERE
    if sm == NOWHERE:
        return EXIT_IDLE
    return dispatch_everywhere(g) if sm == EVERYWHERE else dispatch_to_sm(g, sm)


cdef LoopExit dispatch_everywhere(RunState* g) noexcept nogil:
    """Dispatches thread blocks to all SMs, one SM after the other; kernels in the order of their starts."""
    cdef int index, best, n_tried
    cdef LoopExit stop
    cdef uint64_t[2] is_seen
    is_seen[0] = is_seen[1] = 0
    while True:
        best = -1
        for index in range(g.n_kernels):
            if (g.kernels[index].used and g.kernels[index].started and g.kernels[index].blocks_left
                    and not is_seen[index >> 6] >> (index & 63) & 1):
                if best < 0 or precedes(&g.kernels[index], &g.kernels[best]):
                    best = index
        if best < 0:
            return report_finished_kernel(g, EVERYWHERE)
        is_seen[best >> 6] |= <uint64_t>1 << (best & 63)
        n_tried = 0
        while g.kernels[best].blocks_left and n_tried < g.n_sms:
            if has_resources(g, &g.kernels[best], g.next_sm):
                stop = dispatch(g, best, g.next_sm)
                if stop != EXIT_IDLE:
                    g.resume_sm = EVERYWHERE
                    return stop
                n_tried = 0
            else:
                n_tried += 1
            g.next_sm = g.next_sm + 1 if g.next_sm + 1 < g.n_sms else 0


cdef LoopExit dispatch_to_sm(RunState* g, int sm) noexcept nogil:
    """Dispatches thread blocks to one SM, which has more free resources."""
    cdef int index, best = 0
    cdef LoopExit stop
    while best >= 0:
        best = -1
        for index in range(g.n_kernels):
            if (g.kernels[index].used and g.kernels[index].started and g.kernels[index].blocks_left
                    and has_resources(g, &g.kernels[index], sm)):
                if best < 0 or precedes(&g.kernels[index], &g.kernels[best]):
                    best = index
        if best >= 0:
            stop = dispatch(g, best, sm)
            if stop != EXIT_IDLE:
                g.resume_sm = sm
                return stop
    return report_finished_kernel(g, sm)


cdef LoopExit report_finished_kernel(RunState* g, int sm) noexcept nogil:
    """Reports a kernel whose blocks have all completed, or that has none; the dispatch continues at `sm` later."""
    cdef int index
    for index in range(g.n_kernels):
        if (g.kernels[index].used == 1 and g.kernels[index].started and not g.kernels[index].blocks_left
                and not g.kernels[index].blocks_running):
            g.kernels[index].used = 2
            g.exit_kernel = index
            g.resume_sm = sm
            return EXIT_DONE
    return EXIT_IDLE


cdef LoopExit dispatch(RunState* g, int index, int sm) noexcept nogil:
    """Dispatches the next thread block of a kernel to an SM that has the resources."""
    cdef ActiveKernel* kernel = &g.kernels[index]
    cdef FreeSmResources* resources = &g.free_resources[sm]
    cdef ChunkState* chunk
    cdef const BlockRecord* record
    cdef ResidentBlock* block
    cdef Warp* warp
    cdef Scheduler* scheduler
    cdef int number, slot, i
    cdef int64_t start
    if kernel.chunk >= 0 and kernel.next_block == g.chunks[kernel.chunk].n_blocks:
        kernel.chunk = -1
    if kernel.chunk < 0:
        g.exit_kernel = index
        return EXIT_CHUNK
    chunk = &g.chunks[kernel.chunk]
    record = &chunk.blocks[kernel.next_block]
    kernel.next_block += 1
    kernel.blocks_left -= 1
    if record.n_warps == 0:
        chunk.blocks_left -= 1
        return EXIT_IDLE
    invalidate_l1_for(g, kernel, sm)
    kernel.blocks_running += 1
    number = g.free_block
    block = &g.blocks[number]
    g.free_block = block.next_free
    block.kernel, block.chunk = index, kernel.chunk
    block.warps_left, block.at_barrier, block.arrived_ps = <int>record.n_warps, 0, 0
    if g.l1.stored_ps != NULL:
        g.l1.stored_ps[number] = 0
    resources.blocks -= 1
    resources.threads -= kernel.threads_per_block
    resources.registers -= kernel.registers_per_block
    resources.shared -= kernel.shared_per_block
    start = max_i64(g.now_ps, resources.next_block_ps)
    resources.next_block_ps = start + g.block_interval_ps + <int>record.n_warps * g.warp_interval_ps
    start += g.block_overhead_ps
    for i in range(<int>record.n_warps):
        slot = lowest_bit(resources.free_slots)
        resources.free_slots &= resources.free_slots - 1
        warp = &g.warps[sm * MAX_WARPS + slot]
        warp.op = <const StreamOp*>(chunk.streams.ops + chunk.streams.starts[record.first_warp + i])
        warp.clock_ps = 0
        warp.stall_ps = start
        warp.last_arrival_ps = start
        start += g.warp_interval_ps
        warp.block = number
        warp.n_pending_loads = warp.at_barrier = 0
        if g.code.code_ready != NULL:
            icache_start_warp(&g.code, warp.number)
        scheduler = &g.schedulers[sm * g.n_schedulers + slot % g.n_schedulers]
        scheduler_add(scheduler, slot, warp_next(warp, g.pending_loads + warp.number * MAX_OTHER_PENDING))
    for i in range(sm * g.n_schedulers, (sm + 1) * g.n_schedulers):
        events_set(&g.events, i, scheduler_time(&g.schedulers[i]))
    return EXIT_IDLE


cdef LoopExit retire_warp(RunState* g, int scheduler_number, int sm, int position, Warp* warp, int64_t now) noexcept nogil:
    """Retires a warp. If it is the last one of its thread block, the SM's resources go to other blocks."""
    cdef Scheduler* scheduler = &g.schedulers[scheduler_number]
    cdef ResidentBlock* block = &g.blocks[warp.block]
    cdef ActiveKernel* kernel = &g.kernels[block.kernel]
    cdef FreeSmResources* resources = &g.free_resources[sm]
    if g.l1.stored_ps != NULL and block.warps_left == 1:
        kernel.stored_ps = max_i64(kernel.stored_ps, g.l1.stored_ps[warp.block])
        if kernel.blocks_running == 1 and kernel.blocks_left == 0 and (kernel.stored_ps > now or kernel.stores_in_flight):
            # The last warp of a kernel waits for the kernel's stores.
            kernel.last_warp = warp.number
            scheduler_resume(scheduler, position, NEVER if kernel.stores_in_flight else kernel.stored_ps)
            events_insert(&g.events, scheduler_number, scheduler_time(scheduler))
            return EXIT_IDLE
    resources.free_slots |= <uint64_t>1 << scheduler.slot[position]
    scheduler_remove(scheduler, position)
    events_set(&g.events, scheduler_number, scheduler_time(scheduler))
    block.warps_left -= 1
    if block.warps_left:
        if block.at_barrier == block.warps_left:
            release_barrier(g, sm, warp.block, max_i64(now, block.arrived_ps))
        return EXIT_IDLE
    g.chunks[block.chunk].blocks_left -= 1
    resources.blocks += 1
    resources.threads += kernel.threads_per_block
    resources.registers += kernel.registers_per_block
    resources.shared += kernel.shared_per_block
    kernel.blocks_running -= 1
    block.next_free = g.free_block
    g.free_block = warp.block
    if kernel.blocks_running == 0 and kernel.blocks_left == 0:
        g.exit_kernel = block.kernel
        kernel.used = 2
        g.resume_sm = sm
        return EXIT_DONE
    return dispatch_to_sm(g, sm)


cdef bint waits_for_code(RunState* g, int scheduler_number, int sm, int position, const Warp* warp, int64_t now) noexcept nogil:
    """Whether a warp waits for instructions of its next operation; it is then ready when they arrive."""
    cdef Scheduler* scheduler = &g.schedulers[scheduler_number]
    cdef int64_t ready = g.code.code_ready(&g.code, &g.kernels[g.blocks[warp.block].kernel].code, warp, sm, now)
    if ready <= now:
        return False
    scheduler_resume(scheduler, position, ready)
    events_insert(&g.events, scheduler_number, scheduler_time(scheduler))
    return True


cdef void reach_barrier(RunState* g, int scheduler_number, int position, Warp* warp, int64_t now) noexcept nogil:
    """Barrier arrival of a warp: it waits for the others of its thread block."""
    cdef ResidentBlock* block = &g.blocks[warp.block]
    cdef FreeSmResources* resources = &g.free_resources[scheduler_number // g.n_schedulers]
    warp_issued(warp, now)
    block.arrived_ps = resources.next_barrier_ps = max_i64(now, resources.next_barrier_ps) + g.barrier_arrival_interval_ps
    warp.at_barrier = 1
    scheduler_set(&g.schedulers[scheduler_number], position, NEVER)
    block.at_barrier += 1
    if block.at_barrier == block.warps_left:
        release_barrier(g, scheduler_number // g.n_schedulers, warp.block, block.arrived_ps)


cdef void release_barrier(RunState* g, int sm, int number, int64_t now) noexcept nogil:
    """Barrier release: all warps of a thread block have arrived."""
    cdef Scheduler* scheduler
    cdef Warp* warp
    cdef int scheduler_number, position
    g.blocks[number].at_barrier = 0
    for scheduler_number in range(sm * g.n_schedulers, (sm + 1) * g.n_schedulers):
        scheduler = &g.schedulers[scheduler_number]
        for position in range(scheduler.n):
            warp = &g.warps[sm * MAX_WARPS + scheduler.slot[position]]
            if warp.block == number and warp.at_barrier:
                warp.at_barrier = 0
                warp.stall_ps = max_i64(warp.stall_ps, now + g.core.barrier_ps - warp.clock_ps)
                scheduler_set(scheduler, position, next_time(g, warp, now))
        events_set(&g.events, scheduler_number, scheduler_time(scheduler))
