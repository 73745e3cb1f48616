"""Kernels, their chunks and thread blocks: which run, where they run, what an SM has left, and barriers."""
from libc.stdint cimport int64_t, uint64_t

from buddysim.replay.engine.arena cimport Arena
from buddysim.replay.engine.icache cimport Code, CodeCaches
from buddysim.replay.engine.events cimport Events
from buddysim.replay.engine.memory cimport MemorySystem
from buddysim.replay.engine.sm cimport L1s, Pending, Scheduler, Warp
from buddysim.replay.engine.stream cimport CoreTiming, StreamMemory
from buddysim.trace.records cimport BlockRecord

cdef enum Stop:                 # why the event loop returns
    STOP_IDLE = 0               # nothing is running: from `dispatch_*`, that the loop may go on
    STOP_PAUSE = 1
    STOP_CHUNK = 2              # a kernel needs its next chunk
    STOP_DONE = 3               # a kernel has ended

cdef enum:
    MAX_KERNELS = 128           # running at once
    EVERYWHERE = -1             # instead of an SM
    NOWHERE = -2

cdef struct Chunk:
    const BlockRecord* blocks
    StreamMemory streams        # of its warps
    int64_t n_blocks
    int64_t blocks_left         # not yet finished
    int next_free               # list of unused chunks

cdef struct ActiveKernel:
    int used                    # 2: it has ended
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
    int64_t stored_ps           # when the stores of the blocks that have ended are acknowledged
    Code code

cdef struct ResidentBlock:
    int kernel
    int64_t chunk
    int warps_left
    int at_barrier
    int64_t arrived_ps          # when the last of these was there
    int next_free

cdef struct Room:               # what an SM has left
    uint64_t free_slots         # warp slots, a bit each
    int blocks
    int threads
    int64_t registers
    int64_t shared
    int64_t next_block_ps
    int64_t next_barrier_ps     # when a barrier can take its next warp

cdef struct Gpu:                # one run's machine state
    Arena arena                 # where all that follows lies, but for the chunks
    MemorySystem m
    L1s l1
    CoreTiming core
    Events events               # when each scheduler can issue next
    int n_sms
    int n_schedulers            # per SM
    int max_blocks              # per SM
    int64_t block_interval_ps
    int64_t warp_interval_ps
    int64_t block_latency_ps
    int64_t barrier_interval_ps
    CodeCaches code
    Scheduler* schedulers       # [sms][schedulers]
    Warp* warps                 # [sms][MAX_WARPS]
    Pending* later              # [warps][MAX_LATER]
    Room* rooms                 # [sms]
    ResidentBlock* blocks       # [sms][max_blocks]
    int free_block              # list of unused ones
    ActiveKernel[MAX_KERNELS] kernels
    int n_kernels               # of these, used so far
    int n_waiting               # kernels that have not started
    Chunk* chunks
    int64_t n_chunks
    int free_chunk
    int next_sm                 # where dispatch goes on
    int resume_sm               # where dispatch has been interrupted, EVERYWHERE or NOWHERE
    int stop_kernel             # that the reason to stop is about, or -1
    int64_t now_ps
    int64_t warp_instructions
    int64_t issue_busy_ps


cdef int gpu_init(Gpu* g, dict n) except -1
cdef void gpu_free(Gpu* g) noexcept
cdef bint kernel_add(Gpu* g, const ActiveKernel* kernel) noexcept
cdef int64_t chunk_reserve(Gpu* g) except -1
cdef void chunk_hand_out(Gpu* g, int64_t index, int handle) noexcept
cdef void chunk_release(Gpu* g, int64_t index) noexcept
cdef int next_start(Gpu* g, int64_t before) noexcept nogil
cdef Stop kernel_start(Gpu* g, int index) noexcept nogil
cdef Stop dispatch_on(Gpu* g) noexcept nogil
cdef Stop exit_warp(Gpu* g, int leaf, int sm, int position, Warp* warp, int64_t now) noexcept nogil
cdef void reach_barrier(Gpu* g, int leaf, int position, Warp* warp, int64_t now) noexcept nogil
cdef bint waits_for_code(Gpu* g, int leaf, int sm, int position, const Warp* warp, int64_t now) noexcept nogil
