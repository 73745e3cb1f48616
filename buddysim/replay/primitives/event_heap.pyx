"""Insertion into a heap, and removal of its earliest event."""
from libc.stdlib cimport free, realloc


cdef inline bint precedes(const HeapEvent* one, const HeapEvent* other) noexcept nogil:
    return one.time_ps < other.time_ps or (one.time_ps == other.time_ps and one.rank < other.rank)


cdef bint heap_push(EventHeap* heap, HeapEvent event) noexcept nogil:
    """Inserts an event; False if there is no memory for it."""
    cdef int at = heap.n, parent, capacity
    cdef HeapEvent* grown
    if heap.n == heap.capacity:
        capacity = 2 * heap.capacity if heap.capacity else 1024
        grown = <HeapEvent*>realloc(heap.events, <size_t>capacity * sizeof(HeapEvent))
        if not grown:
            return False
        heap.events, heap.capacity = grown, capacity
    heap.n += 1
    while at:
        parent = (at - 1) >> 1
        if precedes(&heap.events[parent], &event):
            break
        heap.events[at] = heap.events[parent]
        at = parent
    heap.events[at] = event
    return True


cdef HeapEvent heap_pop(EventHeap* heap) noexcept nogil:
    """Removes the earliest event of a heap that has one."""
    cdef HeapEvent first = heap.events[0], last
    cdef int at = 0, child
    heap.n -= 1
    last = heap.events[heap.n]
    while True:
        child = 2 * at + 1
        if child >= heap.n:
            break
        if child + 1 < heap.n and precedes(&heap.events[child + 1], &heap.events[child]):
            child += 1
        if not precedes(&heap.events[child], &last):
            break
        heap.events[at] = heap.events[child]
        at = child
    heap.events[at] = last
    return first


cdef void heap_free(EventHeap* heap) noexcept:
    """Frees the events."""
    free(heap.events)
    heap.events = NULL
    heap.n = heap.capacity = 0
