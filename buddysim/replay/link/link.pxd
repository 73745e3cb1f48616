"""The link to memory outside the GPU: a port in each direction, and what its protocol adds to a payload."""
from libc.stdint cimport int64_t

from buddysim.replay.primitives.arena cimport Arena
from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.kinds cimport TRAFFIC_KINDS
from buddysim.replay.primitives.port cimport Port

cdef enum LinkTransfer:
    READ_REQUEST = 0  # from the GPU
    READ_DATA = 1     # to the GPU
    WRITE_DATA = 2    # from the GPU
    WRITE_ACK = 3     # to the GPU

cdef struct Link

ctypedef int64_t (*PacketsOp)(const Link* link, int64_t payload, LinkTransfer transfer) noexcept nogil

cdef struct Link:
    PacketsOp packets      # bytes on the link for a read or write of `payload` bytes; NULL: `bytes_with_headers`
    void* protocol_state   # the protocol's own, in the run's arena
    int64_t byte_cost_num  # cost of a byte to the GPU in port units = num / den
    int64_t byte_cost_den
    int64_t write_cost_num  # cost of a byte from the GPU
    int64_t write_cost_den
    int64_t read_ps        # L2 slice to memory behind the link and back, idle, without the transfer
    int64_t header_bytes   # of a packet
    int64_t packet_bytes   # largest payload of a packet
    Port* ports            # [2]: read direction, write direction
    int64_t read_bytes     # payload and headers carried
    int64_t write_bytes
    int64_t[TRAFFIC_KINDS] read_payload  # bytes by Traffic
    int64_t[TRAFFIC_KINDS] write_payload


cdef inline int64_t bytes_with_headers(const Link* link, int64_t payload) noexcept nogil:
    return payload + (payload + link.packet_bytes - 1) / link.packet_bytes * link.header_bytes


cdef inline int64_t link_bytes(const Link* link, int64_t payload, LinkTransfer transfer) noexcept nogil:
    """Bytes on the link: payload and what the protocol adds to it."""
    if unlikely(link.packets != NULL):
        return link.packets(link, payload, transfer)
    return bytes_with_headers(link, payload)


cdef inline int64_t link_read_cost(const Link* link, int64_t total) noexcept nogil:
    return (total * link.byte_cost_num + link.byte_cost_den - 1) / link.byte_cost_den


cdef inline int64_t link_write_cost(const Link* link, int64_t total) noexcept nogil:
    return (total * link.write_cost_num + link.write_cost_den - 1) / link.write_cost_den


cdef int link_init(Arena* arena, Link* link, dict n, dict policies) except -1
