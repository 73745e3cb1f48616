"""MSHRs: a bound of the misses in flight."""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.primitives.arena cimport Arena, arena_zeroed

# A ring: MSHRs are taken in order, so the next one is the one taken longest ago.
cdef struct Mshrs:
    int64_t* free_ps  # [n]: when each comes free
    int64_t* end
    int64_t* next


cdef inline int mshrs_init(Arena* arena, Mshrs* mshrs, uint32_t n) except -1:
    """Creates `n` free MSHRs."""
    mshrs.free_ps = <int64_t*>arena_zeroed(arena, n, sizeof(int64_t))
    mshrs.end = mshrs.free_ps + n
    mshrs.next = mshrs.free_ps
    return 0


cdef inline int64_t* mshr_pop(Mshrs* mshrs) noexcept nogil:
    """Takes the next MSHR. Points to the time at which it comes free; the caller stores the new time."""
    cdef int64_t* accepted_ps = mshrs.next
    mshrs.next = accepted_ps + 1 if accepted_ps + 1 != mshrs.end else mshrs.free_ps
    return accepted_ps


cdef inline int64_t* mshr_pop_earlier(Mshrs* mshrs) noexcept nogil:
    """`mshr_pop` of the one that comes free first among the next two MSHRs."""
    cdef int64_t* accepted_ps = mshr_pop(mshrs)
    cdef int64_t free_ps = accepted_ps[0]
    if mshrs.next[0] < free_ps:
        accepted_ps[0] = mshrs.next[0]
        mshrs.next[0] = free_ps
    return accepted_ps
