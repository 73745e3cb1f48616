"""Set-up of the link."""
from buddysim.replay.link.protocol.base cimport LinkProtocolBase
from buddysim.replay.primitives.arena cimport arena_zeroed
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.kinds cimport SECTOR_BYTES
from buddysim.replay.primitives.port cimport FINE_BITS


cdef int link_init(Arena* arena, Link* link, dict n, dict policies) except -1:
    """Sets up the link of a machine (`link.numbers`); an idle read of a sector takes `link.load_to_use`."""
    link.byte_cost_num, link.byte_cost_den = n["link_byte_cost"]
    link.write_cost_num, link.write_cost_den = n["link_write_byte_cost"]
    link.ports = <Port*>arena_zeroed(arena, 2, sizeof(Port))
    link.header_bytes, link.packet_bytes = n["link_header_bytes"], n["link_max_payload_bytes"]
    (<LinkProtocolBase?>policies["link protocol"]).prepare(arena, link)
    link.read_ps = n["link_load_ps"]
    link.read_ps = max_i64(0, link.read_ps - (link_read_cost(link, link_bytes(link, SECTOR_BYTES, READ_DATA)) >> FINE_BITS))
    return 0
