"""Bit-Plane Compression: sizes (`bpc_sizes.h`, the hot path), and one entry to and from its bits."""
from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef extern from "bpc_sizes.h" nogil:
    const int BPC_SCALAR
    const int BPC_VECTOR_4
    const int BPC_AVX2
    int bpc_best_path() noexcept
    void bpc_sizes(int path, const uint8_t* data, int64_t entries, int unsigned_words, uint32_t* bits) noexcept


cdef struct BitStream:
    uint8_t* bytes
    int64_t position        # in bits
    int64_t end             # in bits


cdef inline void put_bits(BitStream* stream, uint32_t value, int count) noexcept nogil:
    """Appends the low `count` bits, the highest first, to bytes that are still zero."""
    cdef int i
    for i in range(count - 1, -1, -1):
        if value >> i & 1:
            stream.bytes[stream.position >> 3] |= <uint8_t>(0x80 >> (stream.position & 7))
        stream.position += 1


cdef inline int64_t take_bits(BitStream* stream, int count) noexcept nogil:
    """The next `count` (at most 32) bits, or -1 where the stream ends before."""
    cdef int64_t value = 0
    cdef int _i
    if stream.position + count > stream.end:
        return -1
    for _i in range(count):
        value = value << 1 | (stream.bytes[stream.position >> 3] >> (7 - (stream.position & 7)) & 1)
        stream.position += 1
    return value


cdef void encode_entry(const uint8_t* entry, bint unsigned_words, BitStream* stream) noexcept nogil
cdef bint decode_entry(BitStream* stream, uint8_t* entry) noexcept nogil
