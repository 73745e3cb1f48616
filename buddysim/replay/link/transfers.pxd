"""Reads and writes behind the link, counted."""
from libc.stdint cimport int64_t

from buddysim.replay.link.link cimport WRITE_DATA, bytes_with_headers, link_bytes, link_read_cost, link_write_cost
from buddysim.replay.memory.memory cimport MemorySystem, port_transfer_counted
from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.kinds cimport LINK_READ, LINK_WRITE, Traffic
from buddysim.replay.primitives.port cimport FINE_BITS


cdef int64_t link_read_by_protocol(MemorySystem* m, int64_t payload, Traffic kind, int64_t t) noexcept nogil


cdef inline int64_t carry_read(MemorySystem* m, int64_t payload, int64_t total, Traffic kind, int64_t t) noexcept nogil:
    """Carries the data of a read, `total` bytes with what the protocol adds; returns their arrival."""
    cdef int64_t cost = link_read_cost(&m.link, total)
    m.count.link_read[<int>kind] += payload
    m.link.read_bytes += total
    return port_transfer_counted(m, LINK_READ, &m.link.ports[0], t, cost) + m.link.read_ps + (cost >> FINE_BITS)


cdef inline int64_t link_read(MemorySystem* m, int64_t payload, Traffic kind, int64_t t) noexcept nogil:
    """Reads `payload` bytes behind the link for an L2 slice, at `t`; returns their arrival there."""
    if unlikely(m.link.packets != NULL):
        return link_read_by_protocol(m, payload, kind, t)
    return carry_read(m, payload, bytes_with_headers(&m.link, payload), kind, t)


cdef inline int64_t link_write(MemorySystem* m, int64_t payload, Traffic kind, int64_t t) noexcept nogil:
    """Posts a write of `payload` bytes behind the link at `t`; returns the time at which the link accepts them."""
    cdef int64_t total = link_bytes(&m.link, payload, WRITE_DATA)
    m.count.link_write[<int>kind] += payload
    m.link.write_bytes += total
    return port_transfer_counted(m, LINK_WRITE, &m.link.ports[1], t, link_write_cost(&m.link, total))
