"""Set-up of the input queues, and replies through reservation tables."""
from buddysim.replay.engine.arena cimport arena_zeroed
from buddysim.replay.engine.reservation_table cimport slot_grid, table_init

cdef enum:
    NO_REFRESH_PS = 1 << 62


cdef int input_queues_init(Arena* arena, MemorySystem* m, dict n) except -1:
    """Sets up queues and tables of a machine (`crossbar.numbers`), after its SMs and slices."""
    cdef int i
    m.crossbar.queue_sector_ps = n["queue_sector_ps"]
    m.crossbar.slice_grid = slot_grid(n["slice_sector_ps"], 0, NO_REFRESH_PS)
    m.crossbar.reply_grid = slot_grid(n["reply_sector_ps"], 0, NO_REFRESH_PS)
    for i in range(<int>n["sms"]):
        m.crossbar.sms[i].reply_reservations = new_table(arena, &m.crossbar.reply_grid)
    for i in range(<int>n["slices"]):
        m.l2.slices[i].request_reservations = new_table(arena, &m.crossbar.slice_grid)
        m.l2.slices[i].reply_reservations = new_table(arena, &m.crossbar.slice_grid)
    m.crossbar.send_requests, m.crossbar.send_replies = send_requests, send_replies
    return 0


cdef ReservationTable* new_table(Arena* arena, const SlotGrid* grid) except NULL:
    cdef ReservationTable* table = <ReservationTable*>arena_zeroed(arena, 1, sizeof(ReservationTable))
    table_init(grid, table)
    return table


cdef int64_t send_requests(MemorySystem* m, SmPorts* sm, Slice* slice, int requests, int64_t t) noexcept nogil:
    return send_through_queue(m, sm, slice, requests, t, NULL, NULL)


cdef int64_t send_replies(MemorySystem* m, SmPorts* sm, Slice* slice, int replies, int64_t t) noexcept nogil:
    """Sends the replies of a slice at `t`, one per sector, to an SM; returns the time at which the last one leaves.

    In each slot, one reply leaves a slice and one arrives at an SM; replies to one request are at least `sector_ps` apart.
    Replies reserve slots out of order: none blocks another.
    """
    cdef int64_t departure_ps = t - m.crossbar.sector_ps
    for _ in range(replies):
        departure_ps += m.crossbar.sector_ps
        departure_ps = reserve_sector_slot(m, &m.crossbar.slice_grid, slice.reply_reservations, departure_ps)
        departure_ps = reserve_sector_slot(m, &m.crossbar.reply_grid, sm.reply_reservations, departure_ps)
    return departure_ps
