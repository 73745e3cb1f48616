/* Which code of base-delta-immediate compression an entry has: docs/reference/compressors.md defines them.
 * Two paths with the same results: AVX2 where the processor has it (detected at run time), and plain C. */
#ifndef BUDDYSIM_BDI_SIZES_H
#define BUDDYSIM_BDI_SIZES_H
#include <stdint.h>
#include <string.h>

#include "processor.h"

enum { BDI_SCALAR = 0, BDI_AVX2 = 1 };

#if defined(__GNUC__) && defined(__x86_64__) && !defined(BUDDYSIM_NO_SIMD)
#define BDI_HAS_AVX2 1
#endif

typedef struct {
    uint8_t id;          /* the paper's Table 2 */
    uint8_t base_bytes;  /* 0 where the code isn't of a base and deltas */
    uint8_t delta_bytes;
    uint16_t bits;       /* what the paper counts */
    uint16_t whole_bits; /* with the id of 4 bits and a mask bit per element */
} bdi_code;

#define BDI_BASE_DELTA(id, k, d)                                                                                       \
    {                                                                                                                  \
        id, k, d, 8 * ((k) + 128 / (k) * (d)), 8 * ((k) + 128 / (k) * (d)) + 128 / (k) + 4                             \
    }

enum { BDI_ZEROS, BDI_REPEATED, BDI_B8D1, BDI_B8D2, BDI_B8D4, BDI_B4D1, BDI_B4D2, BDI_B2D1, BDI_RAW, BDI_CODES };

static const bdi_code bdi_codes[BDI_CODES] = {
    {0, 0, 0, 8, 12},        {1, 0, 0, 64, 68},       BDI_BASE_DELTA(2, 8, 1),
    BDI_BASE_DELTA(3, 8, 2), BDI_BASE_DELTA(4, 8, 4), BDI_BASE_DELTA(5, 4, 1),
    BDI_BASE_DELTA(6, 4, 2), BDI_BASE_DELTA(7, 2, 1), {15, 0, 0, 1024, 1028},
};

/* The codes of a base and deltas from the smallest up, without and with masks (which cost B2D1 the most). */
enum { BDI_TESTED = 6 };
static const uint8_t bdi_by_bits[BDI_TESTED] = {BDI_B8D1, BDI_B4D1, BDI_B8D2, BDI_B2D1, BDI_B4D2, BDI_B8D4};
static const uint8_t bdi_by_whole_bits[BDI_TESTED] = {BDI_B8D1, BDI_B4D1, BDI_B8D2, BDI_B4D2, BDI_B2D1, BDI_B8D4};

/* Whether an entry fits a base of BITS and deltas within [-limit, limit): every element, or its difference to the first
 * element that doesn't fit itself. */
#define BDI_DEFINE_FITS(BITS)                                                                                          \
    static inline int bdi_fits_##BITS(const uint8_t *entry, uint64_t limit)                                            \
    {                                                                                                                  \
        const uint##BITS##_t half = (uint##BITS##_t)limit, beyond = (uint##BITS##_t) ~(2 * limit - 1);                 \
        uint##BITS##_t element, base = 0;                                                                              \
        int has_base = 0;                                                                                                 \
        for (int i = 0; i < 1024 / BITS; i++) {                                                                        \
            memcpy(&element, entry + i * (BITS / 8), sizeof(element));                                                 \
            if (((uint##BITS##_t)(element + half) & beyond) == 0)                                                      \
                continue;                                                                                              \
            base = has_base ? base : element;                                                                             \
            has_base = 1;                                                                                                 \
            if ((uint##BITS##_t)(element - base + half) & beyond)                                                      \
                return 0;                                                                                              \
        }                                                                                                              \
        return 1;                                                                                                      \
    }

BDI_DEFINE_FITS(16)
BDI_DEFINE_FITS(32)
BDI_DEFINE_FITS(64)

#if BDI_HAS_AVX2
typedef char bdi_bytes __attribute__((vector_size(32)));

/* The same, 32 bytes at a time. A comparison gives ones in every byte of an element for which it holds. */
#define BDI_DEFINE_FITS_AVX2(BITS)                                                                                     \
    typedef uint##BITS##_t bdi_lanes_##BITS __attribute__((vector_size(32)));                                          \
    __attribute__((target("avx2"))) static inline int bdi_fits_##BITS##_avx2(const uint8_t *entry, uint64_t limit)     \
    {                                                                                                                  \
        const uint##BITS##_t half = (uint##BITS##_t)limit, beyond = (uint##BITS##_t) ~(2 * limit - 1);                 \
        uint##BITS##_t base = 0;                                                                                       \
        int has_base = 0;                                                                                                 \
        for (int i = 0; i < 4; i++) {                                                                                  \
            bdi_lanes_##BITS elements;                                                                                 \
            memcpy(&elements, entry + 32 * i, sizeof(elements));                                                       \
            const bdi_bytes itself = (bdi_bytes)(((elements + half) & beyond) == 0);                                   \
            const uint32_t others = ~(uint32_t)__builtin_ia32_pmovmskb256(itself);                                     \
            if (!others)                                                                                               \
                continue;                                                                                              \
            if (!has_base)                                                                                                \
                memcpy(&base, entry + 32 * i + __builtin_ctz(others), sizeof(base));                                   \
            has_base = 1;                                                                                                 \
            const bdi_bytes near = (bdi_bytes)(((elements - base + half) & beyond) == 0);                              \
            if (others & ~(uint32_t)__builtin_ia32_pmovmskb256(near))                                                  \
                return 0;                                                                                              \
        }                                                                                                              \
        return 1;                                                                                                      \
    }

BDI_DEFINE_FITS_AVX2(16)
BDI_DEFINE_FITS_AVX2(32)
BDI_DEFINE_FITS_AVX2(64)
#endif

/* The number of an entry's code in bdi_codes: the smallest that it fits. FITS: which functions test that. */
#define BDI_DEFINE_CHOICE(NAME, TARGET, FITS)                                                                          \
    TARGET static inline int NAME(const uint8_t *entry, const uint8_t *order)                                          \
    {                                                                                                                  \
        uint64_t first, other, differ = 0;                                                                             \
        memcpy(&first, entry, 8);                                                                                      \
        for (int i = 1; i < 16; i++) {                                                                                 \
            memcpy(&other, entry + 8 * i, 8);                                                                          \
            differ |= other ^ first;                                                                                   \
        }                                                                                                              \
        if (!differ)                                                                                                   \
            return first ? BDI_REPEATED : BDI_ZEROS;                                                                   \
        for (int i = 0; i < BDI_TESTED; i++) {                                                                         \
            const bdi_code *code = &bdi_codes[order[i]];                                                               \
            const uint64_t limit = (uint64_t)1 << (8 * code->delta_bytes - 1);                                         \
            const int fits = code->base_bytes == 8   ? FITS(64)(entry, limit)                                          \
                             : code->base_bytes == 4 ? FITS(32)(entry, limit)                                          \
                                                     : FITS(16)(entry, limit);                                         \
            if (fits)                                                                                                  \
                return order[i];                                                                                       \
        }                                                                                                              \
        return BDI_RAW;                                                                                                \
    }

#define BDI_FITS_SCALAR(BITS) bdi_fits_##BITS
#define BDI_FITS_AVX2(BITS) bdi_fits_##BITS##_avx2
BDI_DEFINE_CHOICE(bdi_choice, , BDI_FITS_SCALAR)
#if BDI_HAS_AVX2
BDI_DEFINE_CHOICE(bdi_choice_avx2, __attribute__((target("avx2"))), BDI_FITS_AVX2)

__attribute__((target("avx2"))) static void bdi_sizes_avx2(
    const uint8_t *data, int64_t entries, int whole, const uint8_t *order, uint32_t *bits)
{
    for (int64_t i = 0; i < entries; i++) {
        const bdi_code *code = &bdi_codes[bdi_choice_avx2(data + 128 * i, order)];
        bits[i] = whole ? code->whole_bits : code->bits;
    }
}
#endif

/* The fastest path of this processor. */
static inline int bdi_best_path(void)
{
#if BDI_HAS_AVX2
    if (processor_has("avx2"))
        return BDI_AVX2;
#endif
    return BDI_SCALAR;
}

/* bits[i]: size of entry i, with its mask and id if `whole`. path: one of those up to bdi_best_path(). */
static inline void bdi_sizes(int path, const uint8_t *data, int64_t entries, int whole, uint32_t *bits)
{
    const uint8_t *order = whole ? bdi_by_whole_bits : bdi_by_bits;
#if BDI_HAS_AVX2
    if (path == BDI_AVX2) {
        bdi_sizes_avx2(data, entries, whole, order, bits);
        return;
    }
#endif
    (void)path;
    for (int64_t i = 0; i < entries; i++) {
        const bdi_code *code = &bdi_codes[bdi_choice(data + 128 * i, order)];
        bits[i] = whole ? code->whole_bits : code->bits;
    }
}
#endif
