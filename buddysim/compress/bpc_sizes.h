/* Sizes of BPC-compressed entries in bits, several entries at a time: docs/reference/compressors.md defines them.
 * Three paths with the same results: AVX2 where the processor has it (detected at run time), four lanes of the
 * compiler's baseline vectors, and plain C. */
#ifndef BUDDYSIM_BPC_SIZES_H
#define BUDDYSIM_BPC_SIZES_H
#include <stdint.h>
#include <string.h>

#include "processor.h"

enum { BPC_SCALAR = 0, BPC_VECTOR_4 = 1, BPC_AVX2 = 2, BPC_PATHS = 3 };

#if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ &&                       \
    !defined(BUDDYSIM_NO_SIMD)
#define BPC_HAS_VECTORS 1
#if defined(__x86_64__)
#define BPC_HAS_AVX2 1
#endif
#endif

static inline uint32_t bpc_word(const uint8_t *entry, int i)
{
    const uint8_t *b = entry + 4 * i;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint32_t bpc_ones(uint32_t v)
{
    v = v - (v >> 1 & 0x55555555u);
    v = (v & 0x33333333u) + (v >> 2 & 0x33333333u);
    return ((v + (v >> 4)) & 0x0F0F0F0Fu) * 0x01010101u >> 24;
}

/* One entry in plain C; bpc_lanes.h explains the sums. flip: 0x80000000 for unsigned words, else 0. */
static inline uint32_t bpc_entry_bits(const uint8_t *entry, uint32_t flip)
{
    uint32_t one = 0, two = 0, three = 0, neighbours = 0, all = 0xFFFFFFFFu, delta_ones = 0, signs = 0, before = 0;
    const uint32_t base = bpc_word(entry, 0);
    uint32_t word = base;
    for (int r = 0; r < 31; r++) {
        uint32_t next = bpc_word(entry, r + 1);
        uint32_t delta = next - word;
        /* Signed order of a and b is unsigned order of a ^ 2^31 and b ^ 2^31. */
        uint32_t negative = (next ^ flip ^ 0x80000000u) < (word ^ flip ^ 0x80000000u);
        uint32_t e = delta ^ delta >> 1 ^ negative << 31;
        three |= two & e;
        two |= one & e;
        one |= e;
        all &= e;
        neighbours |= e & before;
        delta_ones |= delta;
        signs = signs << 1 | negative;
        before = e;
        word = next;
    }
    const uint32_t five = one & (all | ~delta_ones);
    const uint32_t ten = ((one & ~two) | (two & ~three & neighbours)) & ~five;
    const uint32_t verbatim = one & ~five & ~ten;
    uint32_t bits = 5 * bpc_ones(five) + 10 * bpc_ones(ten) + 32 * bpc_ones(verbatim);

    const uint64_t zero = (uint64_t)(uint32_t)~one | (uint64_t)(signs == 0) << 32;
    const uint64_t starts = zero & ~(zero >> 1), alone = starts & ~(zero << 1);
    bits += 7 * (bpc_ones((uint32_t)starts) + (uint32_t)(starts >> 32));
    bits -= 4 * (bpc_ones((uint32_t)alone) + (uint32_t)(alone >> 32));
    if (signs) {
        const uint32_t lowest = signs & (0u - signs);
        bits += signs == 0x7FFFFFFFu ? 5 : signs == lowest || signs == 3 * lowest ? 10 : 32;
    }

    if (base == 0)
        return bits + 3;
    if (base & flip)
        return bits + 33;
    if (base + 8u < 16u)
        return bits + 7;
    if (base + 128u < 256u)
        return bits + 11;
    if (base + 32768u < 65536u)
        return bits + 19;
    return bits + 33;
}

#if BPC_HAS_VECTORS
#define LANES 4
#define NAME(x) bpc_##x##_4
#define TARGET
#include "bpc_lanes.h"
#undef LANES
#undef NAME
#undef TARGET
#endif

#if BPC_HAS_AVX2
#define LANES 8
#define NAME(x) bpc_##x##_8
#define TARGET __attribute__((target("avx2")))
#include "bpc_lanes.h"
#undef LANES
#undef NAME
#undef TARGET
#endif

/* The fastest path of this processor. */
static inline int bpc_best_path(void)
{
#if BPC_HAS_AVX2
    if (processor_has("avx2"))
        return BPC_AVX2;
#endif
#if BPC_HAS_VECTORS
    if (vectors_are_allowed())
        return BPC_VECTOR_4;
#endif
    return BPC_SCALAR;
}

/* bits[i]: size of entry i in bits. path: one of those up to bpc_best_path(). */
static inline void bpc_sizes(int path, const uint8_t *data, int64_t entries, int unsigned_words, uint32_t *bits)
{
    const uint32_t flip = unsigned_words ? 0x80000000u : 0;
    int64_t done = 0;
    (void)path;
#if BPC_HAS_VECTORS
    if (path == BPC_VECTOR_4) {
        done = entries / 4 * 4;
        bpc_sizes_4(data, entries / 4, flip, bits);
    }
#endif
#if BPC_HAS_AVX2
    if (path == BPC_AVX2) {
        done = entries / 8 * 8;
        bpc_sizes_8(data, entries / 8, flip, bits);
    }
#endif
    for (; done < entries; done++)
        bits[done] = bpc_entry_bits(data + 128 * done, flip);
}
#endif
