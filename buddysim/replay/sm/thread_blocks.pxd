"""Kernels, chunks and thread blocks: dispatch to SMs, free resources, barriers; the state of a run."""
from libc.stdint cimport int64_t, uint64_t

from buddysim.replay.l1.l1 cimport L1s
from buddysim.replay.memory.memory cimport MemorySystem
from buddysim.replay.primitives.arena cimport Arena
from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.events cimport NEVER, Events
from buddysim.replay.sm.arrival_order cimport ArrivalOrder, block_warp
from buddysim.replay.sm.instruction_cache cimport InstructionCaches, KernelCode
from buddysim.replay.sm.issue_order cimport PickOp, Scheduler
from buddysim.replay.sm.stream cimport CoreTiming, StreamMemory
from buddysim.replay.sm.warp cimport MAX_OTHER_PENDING, PendingLoad, Warp, warp_next
from buddysim.trace.records cimport BlockRecord

# Why the event loop returns.
cdef enum LoopExit:
    EXIT_IDLE = 0   # nothing runs; from dispatch functions: the loop may continue
    EXIT_PAUSE = 1  # the requested number of operations is done
    EXIT_CHUNK = 2  # a kernel needs its next chunk
    EXIT_DONE = 3   # a kernel has completed

cdef enum:
    MAX_KERNELS = 128  # that run at once
    EVERYWHERE = -1    # values of `resume_sm`
    NOWHERE = -2

cdef struct ChunkState:
    const BlockRecord* blocks  # [n_blocks]
    StreamMemory streams       # of its warps
    int64_t n_blocks
    int64_t blocks_left        # blocks that have not completed
    int next_free              # next in the list of unused chunks; -1: last

cdef struct ActiveKernel:
    int used                  # 0: unused, 1: running, 2: completed
    int handle                # the driver's number
    int started               # number of its start among those of all kernels, from 1; 0: not started
    int64_t start_ps
    int64_t blocks_left       # blocks that have not been dispatched
    int64_t blocks_running
    int64_t chunk             # index of the chunk that blocks come from; -1: the next chunk is needed
    int64_t next_block        # index in that chunk
    int warps_per_block
    int threads_per_block
    int64_t registers_per_block
    int64_t shared_per_block  # bytes
    int64_t stored_ps         # acknowledgement of the stores of completed blocks
    KernelCode code
    # In the order of arrival:
    int64_t stores_in_flight  # whose acknowledgement is unknown
    int last_warp             # number of the kernel's last warp, if it waits for these; else -1

cdef struct ResidentBlock:
    int kernel          # index in `kernels`
    int64_t chunk       # index in `chunks`
    int warps_left      # warps that have not exited
    int at_barrier      # warps that wait at the barrier
    int64_t arrived_ps  # last barrier arrival
    int next_free       # next in the list of unused blocks; -1: last

# Resources of an SM that resident blocks leave free.
cdef struct FreeSmResources:
    uint64_t free_slots      # warp slots, one bit each
    int blocks
    int threads
    int64_t registers
    int64_t shared           # bytes
    int64_t next_block_ps    # earliest launch of the next block
    int64_t next_barrier_ps  # earliest next barrier arrival
    int l1_invalidated       # number of the latest kernel that had started when the L1 was last invalidated

# State of one run.
cdef struct RunState:
    Arena arena                          # memory of everything below, except chunks
    MemorySystem m
    L1s l1
    CoreTiming core
    Events events                        # next issue of each scheduler
    int n_sms
    int n_schedulers                     # per SM
    int max_blocks                       # per SM
    int64_t block_interval_ps            # between two block launches on an SM
    int64_t warp_interval_ps             # between two warp launches of a block
    int64_t block_overhead_ps            # once per block
    int64_t barrier_arrival_interval_ps  # between two barrier arrivals on an SM
    InstructionCaches code
    PickOp pick                          # of the warp schedulers; NULL: greedy then oldest
    Scheduler* schedulers                # [sms][schedulers]
    Warp* warps                          # [sms][MAX_WARPS]
    PendingLoad* pending_loads           # [warps][MAX_OTHER_PENDING]
    FreeSmResources* free_resources      # [sms]
    ResidentBlock* blocks                # [sms][max_blocks]
    int free_block                       # first in the list of unused blocks
    ActiveKernel[MAX_KERNELS] kernels
    int n_kernels                        # elements of `kernels` that have been used
    int n_waiting                        # kernels that have not started
    int n_started                        # kernels that have started
    ChunkState* chunks                   # [n_chunks]
    int64_t n_chunks
    int free_chunk                       # first in the list of unused chunks; -1: none
    int next_sm                          # SM at which the next dispatch begins
    int resume_sm                        # SM at which a dispatch was interrupted, EVERYWHERE or NOWHERE
    int exit_kernel                      # index of the kernel that the loop's exit concerns, or -1
    int64_t now_ps
    int64_t warp_instructions
    int64_t issue_busy_ps                # issue slots taken, all schedulers
    ArrivalOrder order                   # unused in the order of issue


cdef inline int64_t next_time(RunState* g, Warp* warp, int64_t now) noexcept nogil:
    """`warp_next`; in the order of arrival NEVER while it needs an unknown time."""
    cdef PendingLoad* other_pending = g.pending_loads + warp.number * MAX_OTHER_PENDING
    if unlikely(g.order.used) and block_warp(&g.order, warp, other_pending, now):
        return NEVER
    return warp_next(warp, other_pending)


cdef int run_state_init(RunState* g, dict n, dict policies) except -1
cdef void run_state_free(RunState* g) noexcept
cdef bint kernel_add(RunState* g, const ActiveKernel* kernel) noexcept
cdef int64_t chunk_reserve(RunState* g) except -1
cdef void chunk_assign(RunState* g, int64_t index, int handle) noexcept
cdef void chunk_release(RunState* g, int64_t index) noexcept
cdef int next_start(RunState* g, int64_t before) noexcept nogil
cdef LoopExit kernel_start(RunState* g, int index) noexcept nogil
cdef LoopExit resume_dispatch(RunState* g) noexcept nogil
cdef LoopExit retire_warp(RunState* g, int scheduler_number, int sm, int position, Warp* warp, int64_t now) noexcept nogil
cdef void reach_barrier(RunState* g, int scheduler_number, int position, Warp* warp, int64_t now) noexcept nogil
cdef bint waits_for_code(RunState* g, int scheduler_number, int sm, int position, const Warp* warp, int64_t now) noexcept nogil
