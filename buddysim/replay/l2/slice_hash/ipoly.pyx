"""`ipoly`: a remainder of polynomials over GF(2), as in GPGPU-Sim (Rau, "Pseudo-randomly interleaved memory", ISCA 1991)."""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from buddysim.replay.l2.slice_hash.base cimport SliceHashBase
from buddysim.replay.primitives.arena cimport Arena, arena_zeroed

ORDER = 1

#: By number of slices: coefficients of an irreducible polynomial, bit i that of x^i.
POLYNOMIALS = {1: 0b1, 2: 0b11, 4: 0b111, 8: 0b1011, 16: 0b10011, 32: 0b100101, 64: 0b1000011}

cdef struct Tables:
    int slice_bits              # log2 of the slices,
    int channel_bits            # of the channels that they belong to,
    int channel_slice_bits      # and of the slices of each
    uint8_t[1024] remainders    # [byte 0 to 3 of a group's number][value of the byte]


cdef void slices_of(const void* state, const uint32_t* units, int n, uint32_t* slices) noexcept nogil:
    """Slices of units: index in the group, channel bits first, XOR the polynomial remainder of the group's number."""
    cdef const Tables* tables = <const Tables*>state
    cdef uint32_t channel, in_channel, group, group_remainder
    cdef int i
    for i in range(n):
        group = units[i] >> tables.slice_bits
        channel = units[i] & ((<uint32_t>1 << tables.channel_bits) - 1)
        in_channel = units[i] >> tables.channel_bits & ((<uint32_t>1 << tables.channel_slice_bits) - 1)
        group_remainder = tables.remainders[group & 255] ^ tables.remainders[256 + (group >> 8 & 255)]
        group_remainder ^= tables.remainders[512 + (group >> 16 & 255)] ^ tables.remainders[768 + (group >> 24)]
        slices[i] = (channel << tables.channel_slice_bits | in_channel) ^ group_remainder


cdef uint8_t polynomial_remainder(int64_t group, int64_t slices, int64_t polynomial) noexcept:
    """Remainder of the polynomial `group` x `slices` divided by `polynomial`, over GF(2)."""
    cdef int64_t remainder = group * slices
    cdef int bit
    for bit in range(46, -1, -1):
        if remainder >> bit >= slices:
            remainder ^= polynomial << bit
    return <uint8_t>remainder


cdef class SliceHash(SliceHashBase):
    SUMMARY = "remainder of polynomials, as in GPGPU-Sim; a power of two of slices, up to 64"

    @staticmethod
    def misfits(machine):
        if machine.l2.slices not in POLYNOMIALS:
            yield f"l2.slices: {machine.l2.slices} with slice_hash ipoly: expected a power of two up to 64"

    cdef int prepare(self, Arena* arena, uint32_t slices, uint32_t slices_per_channel) except -1:
        cdef Tables* tables = <Tables*>arena_zeroed(arena, 1, sizeof(Tables))
        cdef int64_t polynomial = POLYNOMIALS[slices]
        cdef int byte, value
        tables.slice_bits = (<int>slices).bit_length() - 1
        tables.channel_slice_bits = (<int>slices_per_channel).bit_length() - 1
        tables.channel_bits = tables.slice_bits - tables.channel_slice_bits
        for byte in range(4):
            for value in range(256):
                tables.remainders[256 * byte + value] = polynomial_remainder(<int64_t>value << 8 * byte, slices, polynomial)
        self.state, self.slices_of = tables, slices_of
        return 0
