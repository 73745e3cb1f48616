"""Tensors in windows whose codes are whole bytes: the loops over windows, around what a codec does with one of them."""
from libc.stdint cimport int64_t, uint8_t

cdef struct ByteCodec:
    # Bytes of a window's code; the code, and its bytes; the data, and the code's bytes, or -1 where it is corrupt.
    int64_t (*size)(const uint8_t* data, int64_t nbytes, const void* shape) noexcept nogil
    int64_t (*encode)(const uint8_t* data, int64_t nbytes, const void* shape, uint8_t* out) noexcept nogil
    int64_t (*decode)(
        const uint8_t* code, int64_t length, int64_t nbytes, const void* shape, uint8_t* out
    ) noexcept nogil
    const void* shape
    int64_t window              # bytes
    bint raw_fallback           # whether a window may be stored raw; costs a bit per window

cdef object code_bits(const uint8_t[::1] data, const ByteCodec* codec)
cdef object encoded(const uint8_t[::1] data, const ByteCodec* codec)
cdef object decoded(str name, const uint8_t[::1] payload, int64_t nbytes, const ByteCodec* codec)
