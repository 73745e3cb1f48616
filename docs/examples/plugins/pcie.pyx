"""`pcie`: packets of PCI Express 1 to 5, without flow control and acknowledgements.

8 B of a packet are framing, sequence number and LCRC; its header has 12 B with a read's data, and otherwise
16 B, with an address of 64 bits (Intel 683541, Protocol Overhead). A read has requests of up to 512 B and one
completion per `link.max_payload` (Intel 683504, Throughput for Reads).
"""
from libc.stdint cimport int64_t

from buddysim.replay.link.link cimport READ_DATA, READ_REQUEST, WRITE_ACK, Link, LinkTransfer
from buddysim.replay.link.protocol.base cimport LinkProtocolBase
from buddysim.replay.primitives.arena cimport Arena

cdef enum:
    COMPLETION_BYTES = 20
    REQUEST_BYTES = 24
    MAX_READ = 512      # bytes of a request


cdef inline int64_t packet_count(int64_t payload, int64_t most) noexcept nogil:
    return (payload + most - 1) / most


cdef int64_t packets(const Link* link, int64_t payload, LinkTransfer transfer) noexcept nogil:
    if transfer == WRITE_ACK:
        return 0  # writes are posted
    if transfer == READ_REQUEST:
        return packet_count(payload, MAX_READ) * REQUEST_BYTES
    return payload + packet_count(payload, link.packet_bytes) * (
        COMPLETION_BYTES if transfer == READ_DATA else REQUEST_BYTES
    )


cdef class LinkProtocol(LinkProtocolBase):
    SUMMARY = "packets of PCI Express: headers, completions of reads, and their requests in the other direction"

    @staticmethod
    def misfits(machine):
        link = machine.link
        if link.header_size:
            yield f"link.header_size: {link.header_size} B with protocol pcie, which has its own: expected 0 B"
        if link.max_payload not in (128, 256, 512, 1024, 2048, 4096):
            yield f"link.max_payload: {link.max_payload} B with protocol pcie: expected 128, 256 .. 4096 B"

    cdef int prepare(self, Arena* arena, Link* link) except -1:
        link.packets = packets
        return 0
