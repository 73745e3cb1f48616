"""The state of a run in which lines reach L1, L2 and their MSHRs in the order of their arrival (`engine/arrival_order`).

The times of replies are unknown when an instruction issues. What waits for one has a number from `UNKNOWN_PS` on in place of a
time: a warp's pending load that of its instruction, a line of the L1 that of its fill.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.arena cimport Arena
from buddysim.replay.primitives.event_heap cimport EventHeap
from buddysim.replay.primitives.pool cimport Pool
from buddysim.replay.sm.warp cimport PendingLoad, Warp

cdef extern from *:
    """
    #define UNKNOWN_PS (INT64_C(1) << 62)
    """
    const int64_t UNKNOWN_PS

# What a line waits for at the L1.
cdef enum Stage:
    QUEUED = 0        # behind other lines at the L1
    AT_LIMIT = 1      # it may not merge with a line in flight, and holds the L1's port until that has arrived
    NEEDS_MSHR = 2    # it holds the port until one is free
    NEEDS_SLOT = 3    # likewise, of the store buffer
    NEEDS_NOTHING = 4

# What happens at an instant, in this order: then warps issue.
cdef enum ArrivalEvent:
    MSHR_FREED = 0        # of the L1 of an SM
    SLOT_FREED = 1        # of the store buffer of an SM
    REQUEST_ARRIVED = 2   # a line's, at its slice; in the order in which they were sent
    LINE_ENTERS = 3       # the first one that waits at the L1 of an SM; in the order of SMs
    WARP_RETRIES = 4      # a warp whose earliest load has arrived

# A line of an instruction, from issue to reply.
cdef struct WaitingLine:
    int next              # behind it at the L1
    int next_waiting      # for its fill
    int instruction
    int sm
    int fill              # with a miss or a merge: of its L1 line, else -1
    int kind              # of the operation
    Stage stage
    bint last             # the instruction's last one at the port
    uint32_t sectors      # requested, and then missing
    uint32_t waits_for    # slots of the fill that it needs
    uint32_t slot         # of the fill, that its own reply fills
    int64_t work          # of the port before it, since the run's start
    int64_t issued_ps
    int64_t entered_ps    # it entered the L1, or went on there
    int64_t arrival_ps    # latest known
    LineLocation at

# A memory instruction with lines that have no reply.
cdef struct InFlight:
    int next
    int warp              # number of the warp
    int kernel            # index in `RunState.kernels`
    int lines_left
    bint stores           # a store that its warp's end doesn't wait for
    int64_t arrival_ps    # latest known
    int64_t begin_work    # of the port before it
    int64_t leave_ps      # it arrives at least so long after it began to enter; 0: no such limit

# Misses of one line of an L1 that have no reply.
cdef struct LineFill:
    int next
    int waiting           # first of the lines that wait for it; -1: none
    uint32_t open         # slots without a reply
    int stalled_sm        # its SM's L1 stands still until all have arrived; -1: no
    int64_t arrival_ps    # latest known
    int64_t* ready_ps     # of the line, while it holds UNKNOWN_PS + the fill's number

# The L1 of an SM: its port works `granted_work` up to `granted_ps`.
cdef struct SmQueue:
    int first             # of the lines that wait at the L1; -1: none
    int last
    int loads             # MSHRs in use
    int stores            # slots of the store buffer in use
    int n_stopped         # schedulers that wait for space in the queue
    int64_t enters_ps     # time of the event at which the first line enters or goes on; NEVER: none
    int64_t granted_ps
    int64_t granted_work
    int64_t pushed_work   # of all instructions so far

# A scheduler whose instruction has issued and counts as such when the L1's port has worked `work`.
cdef struct StoppedScheduler:
    int scheduler
    int slot              # of its warp
    int64_t issued_ps
    int64_t work

cdef struct ArrivalOrder:
    bint used
    bint failed              # no memory
    int64_t first_ps         # of `events`; NEVER: none, or not used
    int64_t sent             # requests so far
    EventHeap events
    Pool lines               # WaitingLine
    Pool instructions        # InFlight
    Pool fills               # LineFill
    SmQueue* queues          # [sms]
    StoppedScheduler* stopped  # [sms][schedulers], the first one first
    int* unknown             # [warps]: instructions in flight that the warp's end waits for
    uint8_t* blocked         # [warps]: the warp waits for an unknown time


cdef int arrival_order_init(ArrivalOrder* order, Arena* arena, int n_sms, int n_schedulers) except -1
cdef void arrival_order_free(ArrivalOrder* order) noexcept
cdef void push_event(ArrivalOrder* order, int64_t time_ps, ArrivalEvent kind, int64_t rank, int number) noexcept nogil
cdef bint block_warp(ArrivalOrder* order, Warp* warp, PendingLoad* other_pending, int64_t now) noexcept nogil
