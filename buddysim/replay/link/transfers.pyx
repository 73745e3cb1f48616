"""Requests of reads, with protocols that count them."""
from buddysim.replay.link.link cimport READ_REQUEST


cdef int64_t link_request(MemorySystem* m, int64_t payload, int64_t t) noexcept nogil:
    """Sends the requests of a read to memory behind the link; returns the time at which the link accepts them."""
    cdef int64_t total = link_bytes(&m.link, payload, READ_REQUEST)
    if not total:
        return t
    m.link.write_bytes += total
    return port_transfer_counted(m, LINK_WRITE, &m.link.ports[1], t, link_write_cost(&m.link, total))
