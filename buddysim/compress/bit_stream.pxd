"""A stream of bits, the highest of a byte first: what entries are encoded to and decoded from."""
from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef struct BitStream:
    uint8_t* bytes
    int64_t position        # in bits
    int64_t end             # in bits


cdef inline void put_bits(BitStream* stream, uint32_t value, int count) noexcept nogil:
    """Appends the low `count` bits, the highest first, to bytes that are still zero."""
    cdef int free_bits, taken
    while count > 0:
        free_bits = 8 - <int>(stream.position & 7)
        taken = min(free_bits, count)
        count -= taken
        stream.bytes[stream.position >> 3] |= <uint8_t>((value >> count & ((1 << taken) - 1)) << (free_bits - taken))
        stream.position += taken


cdef inline int64_t take_bits(BitStream* stream, int count) noexcept nogil:
    """The next `count` (at most 32) bits, or -1 where the stream ends before."""
    cdef int64_t value = 0
    cdef int left, taken
    if stream.position + count > stream.end:
        return -1
    while count > 0:
        left = 8 - <int>(stream.position & 7)
        taken = min(left, count)
        value = value << taken | (stream.bytes[stream.position >> 3] >> (left - taken) & ((1 << taken) - 1))
        stream.position += taken
        count -= taken
    return value
