"""Reads and writes with a link protocol that counts requests and acknowledgements."""
from buddysim.replay.link.link cimport READ_DATA, READ_REQUEST, WRITE_ACK, WRITE_DATA, link_bytes
from buddysim.replay.primitives.extremes cimport max_i64


cdef int64_t link_read_by_protocol(Link* link, const Waits* waits, int64_t payload, Traffic kind, int64_t t) noexcept nogil:
    """`link_read` with a protocol's own packets. The data follow the requests, and the last of them the last request."""
    cdef int64_t requests = link_bytes(link, payload, READ_REQUEST), cost = link_write_cost(link, requests), requested_ps = t
    if requests:
        link.write_bytes += requests
        t = port_transfer_counted(waits, LINK_WRITE, &link.ports[1], t, cost)
        requested_ps = t + (cost >> FINE_BITS)
    return max_i64(carry_read(link, waits, payload, link_bytes(link, payload, READ_DATA), kind, t), requested_ps + link.read_ps)


cdef int64_t link_write_by_protocol(Link* link, const Waits* waits, int64_t payload, Traffic kind, int64_t t) noexcept nogil:
    """`link_write` with a protocol's own packets. The acknowledgements follow when the link has taken the data."""
    cdef int64_t acknowledgements = link_bytes(link, payload, WRITE_ACK)
    t = carry_write(link, waits, payload, link_bytes(link, payload, WRITE_DATA), kind, t)
    if acknowledgements:
        link.read_bytes += acknowledgements
        port_transfer_counted(waits, LINK_READ, &link.ports[0], t, link_read_cost(link, acknowledgements))
    return t
