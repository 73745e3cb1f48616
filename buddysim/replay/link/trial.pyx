"""A trial of a link protocol: the bytes that transfers take on the link."""
from buddysim.replay.engine.arena cimport Arena, arena_free, arena_zeroed
from buddysim.replay.link.link cimport READ_DATA, READ_REQUEST, WRITE_DATA, Link, link_bytes, link_init


def carried_bytes(dict numbers, dict policies, payloads):
    """Bytes on the link for each payload.

    Parameters
    ----------
    numbers : the machine (`parameters.engine_numbers`)
    policies : an instance of each policy, by kind
    payloads : bytes of the transfers

    Returns
    -------
    list of (a read's data, its requests in the other direction, a write)
    """
    cdef Arena arena = Arena(NULL)
    cdef Link* link
    cdef list carried = []
    try:
        link = <Link*>arena_zeroed(&arena, 1, sizeof(Link))
        link_init(&arena, link, numbers, policies)
        for payload in payloads:
            requests = 0 if link.packets == NULL else link.packets(link, payload, READ_REQUEST)
            carried.append((link_bytes(link, payload, READ_DATA), requests, link_bytes(link, payload, WRITE_DATA)))
    finally:
        arena_free(&arena)
    return carried
