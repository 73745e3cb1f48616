/* Sizes of entries by frequent pattern compression in bits: docs/reference/compressors.md defines them.
 * Two paths with the same results: AVX2 where the processor has it (detected at run time), and plain C. */
#ifndef BUDDYSIM_FPC_SIZES_H
#define BUDDYSIM_FPC_SIZES_H
#include <stdint.h>
#include <string.h>

#include "processor.h"

enum { FPC_SCALAR = 0, FPC_AVX2 = 1 };

/* The prefixes of the paper's Table 1. */
enum {
    FPC_ZEROS = 0,       /* a run of zero words */
    FPC_SIGNED_4 = 1,
    FPC_SIGNED_8 = 2,
    FPC_SIGNED_16 = 3,
    FPC_LOW_HALF_ZERO = 4,
    FPC_TWO_HALVES = 5,  /* each a signed byte */
    FPC_EQUAL_BYTES = 6,
    FPC_RAW = 7,
};

/* Bits of data behind each prefix of 3 bits. */
static const uint8_t fpc_data_bits[8] = {3, 4, 8, 16, 16, 16, 8, 32};

#if defined(__GNUC__) && defined(__x86_64__) && !defined(BUDDYSIM_NO_SIMD)
#define FPC_HAS_AVX2 1
#endif

/* The first of the shortest patterns that a word matches, a zero word apart. */
static inline int fpc_pattern(uint32_t word)
{
    if (word + 8u < 16u)
        return FPC_SIGNED_4;
    if (word + 128u < 256u)
        return FPC_SIGNED_8;
    if (word == (word << 8 | word >> 24))
        return FPC_EQUAL_BYTES;
    if (word + 32768u < 65536u)
        return FPC_SIGNED_16;
    if (word << 16 == 0)
        return FPC_LOW_HALF_ZERO;
    if ((uint16_t)(word + 128u) < 256u && (uint16_t)((word >> 16) + 128u) < 256u)
        return FPC_TWO_HALVES;
    return FPC_RAW;
}

static inline uint32_t fpc_ones(uint32_t v)
{
    v = v - (v >> 1 & 0x55555555u);
    v = (v & 0x33333333u) + (v >> 2 & 0x33333333u);
    return ((v + (v >> 4)) & 0x0F0F0F0Fu) * 0x01010101u >> 24;
}

/* Bits of the runs of an entry whose zero words are the ones of `zero`; a run of more than 8 goes on as another. */
static inline uint32_t fpc_run_bits(uint32_t zero)
{
    uint32_t starts = zero & ~(zero << 1), eight = zero & zero << 1;
    eight &= eight << 2;
    eight &= eight << 4; /* where a zero word is the eighth in a row */
    for (int more = 0; more < 3; more++)
        starts |= starts << 8 & eight;
    return 6 * fpc_ones(starts);
}

static inline uint32_t fpc_entry_bits(const uint8_t *entry)
{
    uint32_t bits = 0, zero = 0;
    for (int i = 0; i < 32; i++) {
        uint32_t word;
        memcpy(&word, entry + 4 * i, 4);
        if (word)
            bits += 3 + fpc_data_bits[fpc_pattern(word)];
        else
            zero |= (uint32_t)1 << i;
    }
    return bits + fpc_run_bits(zero);
}

#if FPC_HAS_AVX2
typedef uint32_t fpc_words __attribute__((vector_size(32)));
typedef uint16_t fpc_halves __attribute__((vector_size(32)));
typedef float fpc_floats __attribute__((vector_size(32)));

/* Eight words at a time. A comparison gives ones in every bit of a word for which it holds. */
__attribute__((target("avx2"))) static void fpc_sizes_avx2(const uint8_t *data, int64_t entries, uint32_t *bits)
{
    for (int64_t entry = 0; entry < entries; entry++) {
        fpc_words sum = {0};
        uint32_t zero = 0, lanes[8];
        for (int i = 0; i < 4; i++) {
            fpc_words words;
            memcpy(&words, data + 128 * entry + 32 * i, sizeof(words));
            const fpc_halves halves = (fpc_halves)words;
            const fpc_words none = (fpc_words)(words == 0);
            const fpc_words signed_4 = (fpc_words)(((words + 8) & ~15u) == 0);
            const fpc_words bits_8 =
                (fpc_words)(((words + 128) & ~255u) == 0) | (fpc_words)(words == (words << 8 | words >> 24));
            const fpc_words bits_16 = (fpc_words)(((words + 32768) & ~65535u) == 0) | (fpc_words)(words << 16 == 0) |
                                      (fpc_words)(((fpc_words)(halves + 128) & 0xFF00FF00u) == 0) | bits_8;
            sum += ~none & (35 - (bits_16 & 16) - (bits_8 & 8) - (signed_4 & 4));
            zero |= (uint32_t)__builtin_ia32_movmskps256((fpc_floats)none) << (8 * i);
        }
        memcpy(lanes, &sum, sizeof(lanes));
        bits[entry] = fpc_run_bits(zero) + lanes[0] + lanes[1] + lanes[2] + lanes[3] + lanes[4] + lanes[5] + lanes[6] +
                      lanes[7];
    }
}
#endif

/* The fastest path of this processor. */
static inline int fpc_best_path(void)
{
#if FPC_HAS_AVX2
    if (processor_has("avx2"))
        return FPC_AVX2;
#endif
    return FPC_SCALAR;
}

/* bits[i]: size of entry i. path: one of those up to fpc_best_path(). */
static inline void fpc_sizes(int path, const uint8_t *data, int64_t entries, uint32_t *bits)
{
#if FPC_HAS_AVX2
    if (path == FPC_AVX2) {
        fpc_sizes_avx2(data, entries, bits);
        return;
    }
#endif
    (void)path;
    for (int64_t entry = 0; entry < entries; entry++)
        bits[entry] = fpc_entry_bits(data + 128 * entry);
}
#endif
