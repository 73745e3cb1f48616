"""Division of entry numbers by counts of a machine (slices, channels, sets), without a division instruction."""
from libc.stdint cimport uint32_t, uint64_t

cdef extern from *:
    """
    #define high_product(a, b) ((uint64_t)((unsigned __int128)(a) * (b) >> 64))
    """
    uint64_t high_product(uint64_t a, uint64_t b) noexcept nogil

cdef struct Divisor:
    uint64_t reciprocal  # 2^63 / by, rounded up
    uint32_t by          # 1 to 2^31
    bint is_power        # `by` is a power of two


cdef inline Divisor divisor(uint32_t by) noexcept nogil:
    """The divisor `by`, with its reciprocal."""
    return Divisor((<uint64_t>1 << 63) / by + ((<uint64_t>1 << 63) % by != 0), by, by & (by - 1) == 0)


cdef inline uint32_t divide(Divisor divisor, uint32_t x) noexcept nogil:
    """x / by, exact: the reciprocal exceeds 2^63 / by by less than 1, so the product exceeds 2^64 x / by by less than 2^33."""
    return <uint32_t>high_product(<uint64_t>x << 1, divisor.reciprocal)


cdef inline uint32_t remainder(Divisor divisor, uint32_t x) noexcept nogil:
    """x % by."""
    return x - divide(divisor, x) * divisor.by
