"""The base of every link protocol."""


cdef class LinkProtocolBase(Component):
    """What a transfer adds to its payload on the link.

    A protocol is one module with a class `LinkProtocol` derived from this one. `packets` gets the payload of a read or write and
    returns the bytes on the link: of a read's data (`READ_DATA`) and of a write (`WRITE_DATA`) at least the payload; of what
    goes in the other direction, a read's requests (`READ_REQUEST`) and a write's acknowledgements (`WRITE_ACK`), 0 if it takes
    no bandwidth.
    """

    cdef int prepare(self, Arena* arena, Link* link) except -1:
        """Allocates the protocol's state (`arena_zeroed`); sets `link.packets` and `link.protocol_state`."""
        return 0
