/* Counts the words that are not zero, for words of 8, 16 and 32 bits, with the compiler's baseline vectors. */
#ifndef BUDDYSIM_ZERO_WORDS_H
#define BUDDYSIM_ZERO_WORDS_H
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && !defined(BUDDYSIM_NO_SIMD)
#define ZERO_WORDS_VECTOR 16

typedef int8_t zw_lanes_8 __attribute__((vector_size(ZERO_WORDS_VECTOR)));
typedef int16_t zw_lanes_16 __attribute__((vector_size(ZERO_WORDS_VECTOR)));
typedef int32_t zw_lanes_32 __attribute__((vector_size(ZERO_WORDS_VECTOR)));

/* A comparison gives -1 per lane that is zero. Lanes of 8 bits are summed up before they could overflow. */
#define DEFINE_ZERO_WORDS(BITS, STEPS)                                                                                 \
    static inline int64_t zero_words_##BITS(const uint8_t *data, int64_t bytes, int64_t *done)                         \
    {                                                                                                                  \
        const zw_lanes_##BITS none = {0};                                                                              \
        const int64_t vectors = bytes / ZERO_WORDS_VECTOR;                                                             \
        int64_t zeros = 0;                                                                                             \
        for (int64_t first = 0; first < vectors; first += 4 * (STEPS)) {                                               \
            const int64_t end = first + 4 * (STEPS) < vectors ? first + 4 * (STEPS) : vectors;                         \
            zw_lanes_##BITS sums[4] = {none, none, none, none};                                                        \
            int64_t v = first;                                                                                         \
            for (; v + 4 <= end; v += 4)                                                                               \
                for (int part = 0; part < 4; part++) {                                                                 \
                    zw_lanes_##BITS words;                                                                             \
                    memcpy(&words, data + (v + part) * ZERO_WORDS_VECTOR, sizeof(words));                              \
                    sums[part] += words == none;                                                                       \
                }                                                                                                      \
            for (; v < end; v++) {                                                                                     \
                zw_lanes_##BITS words;                                                                                 \
                memcpy(&words, data + v * ZERO_WORDS_VECTOR, sizeof(words));                                           \
                sums[v & 3] += words == none;                                                                          \
            }                                                                                                          \
            for (int part = 0; part < 4; part++)                                                                       \
                for (int lane = 0; lane < ZERO_WORDS_VECTOR * 8 / (BITS); lane++)                                      \
                    zeros -= sums[part][lane];                                                                         \
        }                                                                                                              \
        *done = vectors * ZERO_WORDS_VECTOR;                                                                           \
        return zeros;                                                                                                  \
    }
#else
#define DEFINE_ZERO_WORDS(BITS, STEPS)                                                                                 \
    static inline int64_t zero_words_##BITS(const uint8_t *data, int64_t bytes, int64_t *done)                         \
    {                                                                                                                  \
        (void)data, (void)bytes, *done = 0;                                                                            \
        return 0;                                                                                                      \
    }
#endif

DEFINE_ZERO_WORDS(8, 120)
DEFINE_ZERO_WORDS(16, 4096)
DEFINE_ZERO_WORDS(32, 4096)

/* word_bytes: 1, 2 or 4; bytes: a multiple of it. */
static inline int64_t nonzero_words(const uint8_t *data, int64_t bytes, int word_bytes)
{
    int64_t done, zeros;
    if (word_bytes == 1)
        zeros = zero_words_8(data, bytes, &done);
    else if (word_bytes == 2)
        zeros = zero_words_16(data, bytes, &done);
    else
        zeros = zero_words_32(data, bytes, &done);
    for (; done < bytes; done += word_bytes) {
        uint8_t any = 0;
        for (int byte = 0; byte < word_bytes; byte++)
            any |= data[done + byte];
        zeros += any == 0;
    }
    return bytes / word_bytes - zeros;
}
#endif
