"""`nvlink`: packets of NVLink, in flits of 16 B.

A packet has a header flit and up to 16 flits of payload; a read's request is a header alone (NVIDIA, Tesla P100 whitepaper;
Foley and Danskin, Hot Chips 28). An acknowledgement is one, too: at 128 B each way, 8 of 10 flits are payload, the 20 of 25 GB/s
that NVIDIA states (NVIDIA/nccl-tests issue 149). Flits for address extensions and byte enables are not counted: copies in one
direction reach more than with them, and sectors are written whole.
"""
from libc.stdint cimport int64_t

from buddysim.replay.link.link cimport READ_REQUEST, WRITE_ACK, Link, LinkTransfer
from buddysim.replay.link.protocol.base cimport LinkProtocolBase
from buddysim.replay.primitives.arena cimport Arena

cdef enum:
    FLIT_BYTES = 16


cdef int64_t packets(const Link* link, int64_t payload, LinkTransfer transfer) noexcept nogil:
    cdef int64_t headers = (payload + link.packet_bytes - 1) / link.packet_bytes * FLIT_BYTES
    if transfer == READ_REQUEST or transfer == WRITE_ACK:
        return headers
    return headers + (payload + FLIT_BYTES - 1) / FLIT_BYTES * FLIT_BYTES


cdef class LinkProtocol(LinkProtocolBase):
    SUMMARY = "packets of NVLink: a flit of 16 B for each header, read request and acknowledgement of a write"

    @staticmethod
    def misfits(machine):
        link = machine.link
        if link.header_size:
            yield f"link.header_size: {link.header_size} B with protocol nvlink, which has its own: expected 0 B"
        if link.max_payload > 256 or link.max_payload % FLIT_BYTES:
            yield f"link.max_payload: {link.max_payload} B with protocol nvlink: expected a multiple of 16 B up to 256 B"

    cdef int prepare(self, Arena* arena, Link* link) except -1:
        link.packets = packets
        return 0
