/* ZVC of whole groups of 32 words, at whole bytes: a mask of 32 bits (the first word's lowest), then the words that are
 * not zero. Two paths with the same results: AVX2 where the processor has it (detected at run time), and plain C.
 *
 * Neither has a branch that depends on the data. Plain C writes every word and advances the output only past words
 * that are kept; AVX2 shuffles eight words at a time with a table indexed by their mask. */
#ifndef BUDDYSIM_ZVC_GROUPS_H
#define BUDDYSIM_ZVC_GROUPS_H
#include <stdint.h>
#include <string.h>

#include "processor.h"

enum { ZVC_SCALAR = 0, ZVC_AVX2 = 1, ZVC_GROUP = 32, ZVC_MASK_BYTES = 4 };

#if defined(__GNUC__) && defined(__x86_64__) && !defined(BUDDYSIM_NO_SIMD)
#define ZVC_HAS_AVX2 1
#include <immintrin.h>
#endif

static inline uint32_t zvc_load_mask(const uint8_t *code)
{
    return (uint32_t)code[0] | (uint32_t)code[1] << 8 | (uint32_t)code[2] << 16 | (uint32_t)code[3] << 24;
}

static inline void zvc_store_mask(uint8_t *code, uint32_t mask)
{
    for (int byte = 0; byte < ZVC_MASK_BYTES; byte++)
        code[byte] = (uint8_t)(mask >> 8 * byte);
}

static inline int zvc_ones(uint32_t v)
{
    v = v - (v >> 1 & 0x55555555u);
    v = (v & 0x33333333u) + (v >> 2 & 0x33333333u);
    return (int)(((v + (v >> 4)) & 0x0F0F0F0Fu) * 0x01010101u >> 24);
}

/* Encoding writes a group's code to `code`, which has space for all its words, and gives the number of nonzero words.
 * Decoding gives the 32 words at `data`; it returns 0 where a kept word is zero, which no encoder writes. */
#define DEFINE_SCALAR(BITS)                                                                                            \
    static inline int zvc_encode_scalar_##BITS(const uint8_t *data, uint8_t *code)                                     \
    {                                                                                                                  \
        uint32_t mask = 0;                                                                                             \
        int n_nonzero = 0;                                                                                                  \
        for (int i = 0; i < ZVC_GROUP; i++) {                                                                          \
            uint##BITS##_t word;                                                                                       \
            memcpy(&word, data + i * sizeof(word), sizeof(word));                                                      \
            memcpy(code + ZVC_MASK_BYTES + n_nonzero * sizeof(word), &word, sizeof(word));                                  \
            mask |= (uint32_t)(word != 0) << i;                                                                        \
            n_nonzero += word != 0;                                                                                         \
        }                                                                                                              \
        zvc_store_mask(code, mask);                                                                                    \
        return n_nonzero;                                                                                                   \
    }                                                                                                                  \
    static inline int zvc_decode_scalar_##BITS(const uint8_t *code, uint32_t mask, int n_nonzero, uint8_t *data)            \
    {                                                                                                                  \
        uint32_t wrong = 0;                                                                                            \
        int taken = 0;                                                                                                 \
        if (!n_nonzero) {                                                                                                   \
            memset(data, 0, ZVC_GROUP * BITS / 8);                                                                     \
            return 1;                                                                                                  \
        }                                                                                                              \
        for (int i = 0; i < ZVC_GROUP; i++) {                                                                          \
            const uint32_t one = mask >> i & 1;                                                                        \
            uint##BITS##_t word;                                                                                       \
            /* After the last kept word only zeros follow: read that word again rather than past the end. */           \
            memcpy(&word, code + (taken - (taken == n_nonzero)) * sizeof(word), sizeof(word));                              \
            word = (uint##BITS##_t)(word & (0u - one));                                                                \
            wrong |= one & (word == 0);                                                                                \
            memcpy(data + i * sizeof(word), &word, sizeof(word));                                                      \
            taken += (int)one;                                                                                         \
        }                                                                                                              \
        return !wrong;                                                                                                 \
    }

DEFINE_SCALAR(8)
DEFINE_SCALAR(16)
DEFINE_SCALAR(32)

#if ZVC_HAS_AVX2
/* By the mask of eight words: where each kept word is taken from, and where each word of the group is among the kept
 * ones (0x80: nowhere, it is zero). For words of 16 bits in bytes, so that pshufb can use it. */
static uint8_t zvc_gather_8[256][8], zvc_scatter_8[256][8];
static uint8_t zvc_gather_16[256][16], zvc_scatter_16[256][16];

static void zvc_make_tables(void)
{
    for (int mask = 0; mask < 256; mask++) {
        int n_nonzero = 0;
        memset(zvc_gather_8[mask], 0, 8);
        memset(zvc_gather_16[mask], 0, 16);
        for (int i = 0; i < 8; i++) {
            const int one = mask >> i & 1;
            zvc_scatter_8[mask][i] = one ? (uint8_t)n_nonzero : 0x80;
            zvc_scatter_16[mask][2 * i] = one ? (uint8_t)(2 * n_nonzero) : 0x80;
            zvc_scatter_16[mask][2 * i + 1] = one ? (uint8_t)(2 * n_nonzero + 1) : 0x80;
            if (one) {
                zvc_gather_8[mask][n_nonzero] = (uint8_t)i;
                zvc_gather_16[mask][2 * n_nonzero] = (uint8_t)(2 * i);
                zvc_gather_16[mask][2 * n_nonzero + 1] = (uint8_t)(2 * i + 1);
                n_nonzero++;
            }
        }
    }
}

#define ZVC_TARGET __attribute__((target("avx2,popcnt")))

/* Eight words at a time: load them, their mask of non-zero words, what is kept of them in front. */
#define ZVC_LOAD_8(p) _mm_loadl_epi64((const __m128i *)(p))
#define ZVC_LOAD_16(p) _mm_loadu_si128((const __m128i *)(p))
#define ZVC_LOAD_32(p) _mm256_loadu_si256((const __m256i *)(p))
#define ZVC_STORE_8(p, v) _mm_storel_epi64((__m128i *)(p), v)
#define ZVC_STORE_16(p, v) _mm_storeu_si128((__m128i *)(p), v)
#define ZVC_STORE_32(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define ZVC_VECTOR_8 __m128i
#define ZVC_VECTOR_16 __m128i
#define ZVC_VECTOR_32 __m256i
#define ZVC_LIVE_8(v) (~(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_setzero_si128())) & 0xFF)
#define ZVC_LIVE_16(v)                                                                                                 \
    (~(uint32_t)_mm_movemask_epi8(_mm_packs_epi16(_mm_cmpeq_epi16(v, _mm_setzero_si128()), _mm_setzero_si128())) & 0xFF)
#define ZVC_LIVE_32(v)                                                                                                 \
    (~(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(v, _mm256_setzero_si256()))) & 0xFF)
#define ZVC_GATHER_8(v, mask) _mm_shuffle_epi8(v, ZVC_LOAD_8(zvc_gather_8[mask]))
#define ZVC_GATHER_16(v, mask) _mm_shuffle_epi8(v, ZVC_LOAD_16(zvc_gather_16[mask]))
#define ZVC_GATHER_32(v, mask) _mm256_permutevar8x32_epi32(v, _mm256_cvtepu8_epi32(ZVC_LOAD_8(zvc_gather_8[mask])))
#define ZVC_SCATTER_8(v, mask) _mm_shuffle_epi8(v, ZVC_LOAD_8(zvc_scatter_8[mask]))
#define ZVC_SCATTER_16(v, mask) _mm_shuffle_epi8(v, ZVC_LOAD_16(zvc_scatter_16[mask]))
/* An index of 0x80 becomes a negative lane, which is set to zero; the permutation itself uses only the low bits. */
#define ZVC_SCATTER_32(v, mask) zvc_scatter_32(v, _mm256_cvtepi8_epi32(ZVC_LOAD_8(zvc_scatter_8[mask])))

ZVC_TARGET static inline __m256i zvc_scatter_32(__m256i words, __m256i index)
{
    return _mm256_andnot_si256(_mm256_srai_epi32(index, 31), _mm256_permutevar8x32_epi32(words, index));
}

#define DEFINE_AVX2(BITS)                                                                                              \
    ZVC_TARGET static inline int zvc_encode_avx2_##BITS(const uint8_t *data, uint8_t *code)                            \
    {                                                                                                                  \
        uint32_t masks = 0;                                                                                            \
        int n_nonzero = 0;                                                                                                  \
        for (int eighth = 0; eighth < ZVC_GROUP / 8; eighth++) {                                                       \
            const ZVC_VECTOR_##BITS words = ZVC_LOAD_##BITS(data + eighth * BITS);                                     \
            const uint32_t mask = ZVC_LIVE_##BITS(words);                                                              \
            ZVC_STORE_##BITS(code + ZVC_MASK_BYTES + n_nonzero * (BITS / 8), ZVC_GATHER_##BITS(words, mask));               \
            masks |= mask << 8 * eighth;                                                                               \
            n_nonzero += __builtin_popcount(mask);                                                                          \
        }                                                                                                              \
        zvc_store_mask(code, masks);                                                                                   \
        return n_nonzero;                                                                                                   \
    }                                                                                                                  \
    /* Reads as many bytes as if every word were kept. */                                                              \
    ZVC_TARGET static inline int zvc_decode_avx2_##BITS(const uint8_t *code, uint32_t masks, uint8_t *data)            \
    {                                                                                                                  \
        uint32_t live = 0;                                                                                            \
        for (int eighth = 0; eighth < ZVC_GROUP / 8; eighth++) {                                                       \
            const uint32_t mask = masks >> 8 * eighth & 0xFF;                                                          \
            const ZVC_VECTOR_##BITS words = ZVC_SCATTER_##BITS(ZVC_LOAD_##BITS(code), mask);                           \
            ZVC_STORE_##BITS(data + eighth * BITS, words);                                                             \
            live |= ZVC_LIVE_##BITS(words) << 8 * eighth;                                                             \
            code += __builtin_popcount(mask) * (BITS / 8);                                                             \
        }                                                                                                              \
        return live == masks;                                                                                         \
    }

DEFINE_AVX2(8)
DEFINE_AVX2(16)
DEFINE_AVX2(32)
#endif

static int zvc_path = ZVC_SCALAR;

/* Chooses the fastest path of this processor; to be called once, before anything else. */
static inline int zvc_begin(void)
{
#if ZVC_HAS_AVX2
    zvc_make_tables();
    if (processor_has("avx2") && __builtin_cpu_supports("popcnt"))
        zvc_path = ZVC_AVX2;
#endif
    return zvc_path;
}

/* One loop for each path and word size. Encoding stops where the space may not suffice for a group with all its words;
 * decoding where the code ends (`*wrong`), has a zero word (`*wrong`) or, for AVX2, may end within a group with all its
 * words. Both return the number of groups done and advance `*code` past them. */
#define DEFINE_LOOPS(NAME, BITS, TARGET, ENCODE, DECODE, READS)                                                        \
    TARGET static int64_t zvc_encode_groups_##NAME##_##BITS(                                                           \
        const uint8_t *data, int64_t groups, uint8_t **code, const uint8_t *end)                                       \
    {                                                                                                                  \
        const int64_t most = ZVC_MASK_BYTES + ZVC_GROUP * BITS / 8;                                                    \
        uint8_t *at = *code;                                                                                           \
        int64_t done = 0;                                                                                              \
        for (; done < groups && end - at >= most; done++)                                                              \
            at += ZVC_MASK_BYTES + ENCODE(data + done * (ZVC_GROUP * BITS / 8), at) * (BITS / 8);                      \
        *code = at;                                                                                                    \
        return done;                                                                                                   \
    }                                                                                                                  \
    TARGET static int64_t zvc_decode_groups_##NAME##_##BITS(                                                           \
        const uint8_t **code, const uint8_t *end, int64_t groups, uint8_t *data, int *wrong)                           \
    {                                                                                                                  \
        const uint8_t *at = *code;                                                                                     \
        int64_t done = 0;                                                                                              \
        for (; done < groups; done++) {                                                                                \
            uint32_t mask;                                                                                             \
            int n_nonzero;                                                                                                  \
            if (end - at < ZVC_MASK_BYTES + (READS))                                                                   \
                break;                                                                                                 \
            mask = zvc_load_mask(at);                                                                                  \
            n_nonzero = zvc_ones(mask);                                                                                     \
            if (end - at < ZVC_MASK_BYTES + n_nonzero * (BITS / 8) || !DECODE)                                              \
                break;                                                                                                 \
            at += ZVC_MASK_BYTES + n_nonzero * (BITS / 8);                                                                  \
        }                                                                                                              \
        *wrong = done < groups && !((READS) && end - at < ZVC_MASK_BYTES + (READS));                                   \
        *code = at;                                                                                                    \
        return done;                                                                                                   \
    }

#define DEFINE_SCALAR_LOOPS(BITS)                                                                                      \
    DEFINE_LOOPS(scalar, BITS, , zvc_encode_scalar_##BITS,                                                             \
                 zvc_decode_scalar_##BITS(at + ZVC_MASK_BYTES, mask, n_nonzero, data + done * (ZVC_GROUP * BITS / 8)), 0)
#define DEFINE_AVX2_LOOPS(BITS)                                                                                        \
    DEFINE_LOOPS(avx2, BITS, ZVC_TARGET, zvc_encode_avx2_##BITS,                                                       \
                 zvc_decode_avx2_##BITS(at + ZVC_MASK_BYTES, mask, data + done * (ZVC_GROUP * BITS / 8)),              \
                 ZVC_GROUP * BITS / 8)

DEFINE_SCALAR_LOOPS(8)
DEFINE_SCALAR_LOOPS(16)
DEFINE_SCALAR_LOOPS(32)
#if ZVC_HAS_AVX2
DEFINE_AVX2_LOOPS(8)
DEFINE_AVX2_LOOPS(16)
DEFINE_AVX2_LOOPS(32)
#define ZVC_CHOOSE(PATH, VERB, BITS, ...)                                                                              \
    ((PATH) == ZVC_AVX2 ? zvc_##VERB##_groups_avx2_##BITS(__VA_ARGS__) : zvc_##VERB##_groups_scalar_##BITS(__VA_ARGS__))
#else
#define ZVC_CHOOSE(PATH, VERB, BITS, ...) zvc_##VERB##_groups_scalar_##BITS(__VA_ARGS__)
#endif

static inline int64_t zvc_encode_groups(
    int path, int word_bytes, const uint8_t *data, int64_t groups, uint8_t **code, const uint8_t *end)
{
    (void)path;
    return word_bytes == 1   ? ZVC_CHOOSE(path, encode, 8, data, groups, code, end)
           : word_bytes == 2 ? ZVC_CHOOSE(path, encode, 16, data, groups, code, end)
                             : ZVC_CHOOSE(path, encode, 32, data, groups, code, end);
}

/* Plain C decodes what AVX2 leaves near the code's end. */
static inline int64_t zvc_decode_groups(
    int path, int word_bytes, const uint8_t **code, const uint8_t *end, int64_t groups, uint8_t *data, int *wrong)
{
    int64_t done = 0;
    *wrong = 0;
    if (path != ZVC_SCALAR)
        done = word_bytes == 1   ? ZVC_CHOOSE(path, decode, 8, code, end, groups, data, wrong)
               : word_bytes == 2 ? ZVC_CHOOSE(path, decode, 16, code, end, groups, data, wrong)
                                 : ZVC_CHOOSE(path, decode, 32, code, end, groups, data, wrong);
    if (*wrong || done == groups)
        return done;
    data += done * ZVC_GROUP * word_bytes;
    groups -= done;
    return done + (word_bytes == 1   ? zvc_decode_groups_scalar_8(code, end, groups, data, wrong)
                   : word_bytes == 2 ? zvc_decode_groups_scalar_16(code, end, groups, data, wrong)
                                     : zvc_decode_groups_scalar_32(code, end, groups, data, wrong));
}
#endif
