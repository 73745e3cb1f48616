"""Any number of events, the earliest first: a binary heap."""
from libc.stdint cimport int64_t

from buddysim.replay.primitives.events cimport NEVER

# Events of equal time are ordered by `rank`, which differs.
cdef struct HeapEvent:
    int64_t time_ps
    int64_t rank
    int kind
    int number

cdef struct EventHeap:
    HeapEvent* events  # [capacity]
    int n
    int capacity


cdef bint heap_push(EventHeap* heap, HeapEvent event) noexcept nogil
cdef HeapEvent heap_pop(EventHeap* heap) noexcept nogil
cdef void heap_free(EventHeap* heap) noexcept


cdef inline int64_t heap_time(const EventHeap* heap) noexcept nogil:
    """Time of the earliest event; NEVER if there is none."""
    return heap.events[0].time_ps if heap.n else NEVER
