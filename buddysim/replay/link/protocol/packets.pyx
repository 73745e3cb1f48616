"""`packets`: a header for each packet of payload; the engine inlines it (`bytes_with_headers`). Read requests take no bandwidth."""
from buddysim.replay.link.protocol.base cimport LinkProtocolBase

ORDER = 0


cdef class LinkProtocol(LinkProtocolBase):
    SUMMARY = "a header of link.header_size for each link.max_payload; read requests take no bandwidth"
