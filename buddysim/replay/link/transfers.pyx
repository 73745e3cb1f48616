"""Reads with a link protocol that counts their requests."""
from buddysim.replay.link.link cimport READ_DATA, READ_REQUEST


cdef int64_t link_read_by_protocol(Link* link, const Waits* waits, int64_t payload, Traffic kind, int64_t t) noexcept nogil:
    """`link_read` with a protocol's own packets. The data follow when the link has accepted the requests."""
    cdef int64_t requests = link_bytes(link, payload, READ_REQUEST)
    if requests:
        link.write_bytes += requests
        t = port_transfer_counted(waits, LINK_WRITE, &link.ports[1], t, link_write_cost(link, requests))
    return carry_read(link, waits, payload, link_bytes(link, payload, READ_DATA), kind, t)
