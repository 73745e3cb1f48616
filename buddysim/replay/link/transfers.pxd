"""Reads and writes behind the link, counted."""
from libc.stdint cimport int64_t

from buddysim.replay.link.link cimport Link, bytes_with_headers, link_read_cost, link_write_cost
from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.kinds cimport LINK_READ, LINK_WRITE, Traffic
from buddysim.replay.primitives.port cimport FINE_BITS
from buddysim.replay.primitives.waits cimport Waits, port_transfer_counted


cdef int64_t link_read_by_protocol(Link* link, const Waits* waits, int64_t payload, Traffic kind, int64_t t) noexcept nogil
cdef int64_t link_write_by_protocol(Link* link, const Waits* waits, int64_t payload, Traffic kind, int64_t t) noexcept nogil


cdef inline int64_t carry_read(Link* link, const Waits* waits, int64_t payload, int64_t total, Traffic kind,
                               int64_t t) noexcept nogil:
    """Carries the data of a read, `total` bytes with what the protocol adds; returns their arrival."""
    cdef int64_t cost = link_read_cost(link, total)
    link.read_payload[<int>kind] += payload
    link.read_bytes += total
    return port_transfer_counted(waits, LINK_READ, &link.ports[0], t, cost) + link.read_ps + (cost >> FINE_BITS)


cdef inline int64_t link_read(Link* link, const Waits* waits, int64_t payload, Traffic kind, int64_t t) noexcept nogil:
    """Reads `payload` bytes behind the link for an L2 slice, at `t`; returns their arrival there."""
    if unlikely(link.packets != NULL):
        return link_read_by_protocol(link, waits, payload, kind, t)
    return carry_read(link, waits, payload, bytes_with_headers(link, payload), kind, t)


cdef inline int64_t carry_write(Link* link, const Waits* waits, int64_t payload, int64_t total, Traffic kind,
                                int64_t t) noexcept nogil:
    """Carries a write, `total` bytes with what the protocol adds; returns the time at which the link has taken them."""
    cdef int64_t cost = link_write_cost(link, total)
    link.write_payload[<int>kind] += payload
    link.write_bytes += total
    return port_transfer_counted(waits, LINK_WRITE, &link.ports[1], t, cost) + (cost >> FINE_BITS)


cdef inline int64_t link_write(Link* link, const Waits* waits, int64_t payload, Traffic kind, int64_t t) noexcept nogil:
    """Posts a write of `payload` bytes behind the link at `t`; returns the time at which the link has taken them."""
    if unlikely(link.packets != NULL):
        return link_write_by_protocol(link, waits, payload, kind, t)
    return carry_write(link, waits, payload, bytes_with_headers(link, payload), kind, t)
