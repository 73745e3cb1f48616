"""Set-up of the crossbar."""
from buddysim.replay.crossbar.input_queues cimport input_queues_init, reserve_between_slices
from buddysim.replay.memory.memory cimport Crossbar
from buddysim.replay.primitives.arena cimport arena_zeroed
from buddysim.replay.primitives.kinds cimport SLICE_PORT
from buddysim.replay.primitives.waits cimport port_transfer_counted


cdef int crossbar_init(Arena* arena, MemorySystem* m, dict n) except -1:
    """Sets up the crossbar of a machine (`crossbar.numbers`), after its L2."""
    cdef Crossbar* crossbar = &m.crossbar
    crossbar.request_ps, crossbar.reply_ps, crossbar.sector_ps = n["request_ps"], n["reply_ps"], n["sector_ps"]
    crossbar.acknowledgement_ps, crossbar.store_sector_ps = n["acknowledgement_ps"], n["store_sector_ps"]
    crossbar.request_lag_ps = n["request_lag_ps"]
    crossbar.reply_cost, crossbar.request_cost, crossbar.n_sms = n["reply_cost"], n["request_cost"], n["sms"]
    crossbar.sms = <SmPorts*>arena_zeroed(arena, n["sms"], sizeof(SmPorts))
    if n["crossbar_input_queued"]:
        input_queues_init(arena, m, n)
    return 0


cdef int64_t between_slices(MemorySystem* m, Slice* sender, Slice* receiver, int64_t latency_ps, int64_t t) noexcept nogil:
    """Sends a sector from one slice to another at `t`; returns its start there."""
    if m.crossbar.send_requests != NULL:
        return reserve_between_slices(m, sender, receiver, t) + latency_ps
    return port_transfer_counted(&m.waits, SLICE_PORT, &receiver.port, t + latency_ps, m.l2.slice_cost)
