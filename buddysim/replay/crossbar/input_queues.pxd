"""`crossbar.input_queued`: requests of an SM leave through one FIFO; slices and SMs have reservation tables of slots."""
from libc.stdint cimport int64_t

from buddysim.replay.engine.arena cimport Arena
from buddysim.replay.engine.extremes cimport max_i64
from buddysim.replay.engine.kinds cimport REQUEST_PORT
from buddysim.replay.engine.memory cimport MemorySystem, Slice, SmPorts, count_wait
from buddysim.replay.engine.reservation_table cimport ReservationTable, SlotGrid, reserve_first_free, slot_at

ctypedef int64_t (*EarliestOp)(const MemorySystem* m, SmPorts* sm, const Slice* slice, int64_t t) noexcept nogil
ctypedef void (*RecordOp)(const MemorySystem* m, SmPorts* sm, Slice* slice, int64_t departure_ps) noexcept nogil


cdef inline int64_t reserve_sector_slot(MemorySystem* m, const SlotGrid* grid, ReservationTable* table,
                                        int64_t t) noexcept nogil:
    """Reserves the first free slot from `t` on; returns its start, not before `t`."""
    return max_i64(t, grid.slot_ps * reserve_first_free(grid, table, &m.horizon, slot_at(grid, t)))


cdef inline int64_t send_through_queue(MemorySystem* m, SmPorts* sm, Slice* slice, int requests, int64_t t,
                                       EarliestOp earliest, RecordOp record) noexcept nogil:
    """Sends the requests of a line, one per sector, to a slice through their SM's input queue, which they reach at `t`.

    A request leaves after those before it, when its slice accepts it; it blocks all requests behind it (head-of-line blocking).
    `earliest` and `record`, constants, arbitrate between SMs; NULL: first come, first served.
    Returns the time at which the last one leaves, less its distance from the first one between an idle queue and an idle slice.
    """
    cdef int64_t departure_ps = t
    for _ in range(requests):
        departure_ps = max_i64(departure_ps, sm.queue_free_ps)
        if earliest != NULL:
            departure_ps = earliest(m, sm, slice, departure_ps)
        departure_ps = reserve_sector_slot(m, &m.crossbar.slice_grid, slice.request_reservations, departure_ps)
        sm.queue_free_ps = departure_ps + m.crossbar.queue_sector_ps
        if record != NULL:
            record(m, sm, slice, departure_ps)
    departure_ps = max_i64(t, departure_ps - (requests - 1) * max_i64(m.crossbar.queue_sector_ps, m.crossbar.slice_grid.slot_ps))
    count_wait(m, REQUEST_PORT, departure_ps - t)
    return departure_ps


cdef int input_queues_init(Arena* arena, MemorySystem* m, dict n) except -1
