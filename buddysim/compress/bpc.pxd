"""Sizes of Bit-Plane Compression: the hot path, in `bpc_sizes.h`."""
from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef extern from "bpc_sizes.h" nogil:
    const int BPC_SCALAR
    const int BPC_VECTOR_4
    const int BPC_AVX2
    int bpc_best_path() noexcept
    void bpc_sizes(int path, const uint8_t* data, int64_t entries, int unsigned_words, uint32_t* bits) noexcept
