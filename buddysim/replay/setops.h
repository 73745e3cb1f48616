/* The innermost loops: over a set's ways; and what a way holds.
 * SSE2 is part of x86-64; elsewhere the plain loops below compile. Both give the same answers.
 * Rows are padded to a multiple of eight: tags with SET_EMPTY, stamps with STAMP_NEVER.
 * Every way is looked at, 64 at a time: where a tag or the least stamp lies is no branch that a host could foresee. */
#ifndef BUDDYSIM_SETOPS_H
#define BUDDYSIM_SETOPS_H
#include <stdint.h>

#define SET_EMPTY 0xFFFFFFFFu
#define STAMP_NEVER INT16_MAX

/* A bit per sector of a 128 B line. */
typedef struct {
    uint16_t valid : 4;
    uint16_t dirty : 4;
    uint16_t partial : 4;
    uint16_t coming : 4;
} Line;

#if defined(__SSE2__) && !defined(BUDDYSIM_NO_SIMD)
#include <emmintrin.h>

/* The way that holds tag, or -1. */
static inline int set_match(const uint32_t *tags, int padded_ways, uint32_t tag)
{
    const __m128i wanted = _mm_set1_epi32((int)tag);
    for (int base = 0; base < padded_ways; base += 64) {
        const int end = padded_ways - base < 64 ? padded_ways - base : 64;
        uint64_t hits = 0;
        for (int way = 0; way < end; way += 8) {
            const __m128i *eight = (const __m128i *)(tags + base + way);
            __m128i low = _mm_cmpeq_epi32(_mm_load_si128(eight), wanted);
            __m128i high = _mm_cmpeq_epi32(_mm_load_si128(eight + 1), wanted);
            __m128i equal = _mm_packs_epi32(low, high);
            hits |= (uint64_t)_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())) << way;
        }
        if (hits)
            return base + __builtin_ctzll(hits);
    }
    return -1;
}

/* The way with the smallest stamp; the lowest such way where several are equal. */
static inline int set_oldest(const int16_t *stamps, int padded_ways)
{
    __m128i least = _mm_load_si128((const __m128i *)stamps);
    for (int way = 8; way < padded_ways; way += 8)
        least = _mm_min_epi16(least, _mm_load_si128((const __m128i *)(stamps + way)));
    least = _mm_min_epi16(least, _mm_shuffle_epi32(least, _MM_SHUFFLE(1, 0, 3, 2)));
    least = _mm_min_epi16(least, _mm_shuffle_epi32(least, _MM_SHUFFLE(2, 3, 0, 1)));
    __m128i swapped = _mm_shufflelo_epi16(least, _MM_SHUFFLE(2, 3, 0, 1));
    least = _mm_min_epi16(least, _mm_shufflehi_epi16(swapped, _MM_SHUFFLE(2, 3, 0, 1)));
    for (int base = 0;; base += 64) {
        const int end = padded_ways - base < 64 ? padded_ways - base : 64;
        uint64_t hits = 0;
        for (int way = 0; way < end; way += 8) {
            __m128i equal = _mm_cmpeq_epi16(_mm_load_si128((const __m128i *)(stamps + base + way)), least);
            hits |= (uint64_t)_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())) << way;
        }
        if (hits)
            return base + __builtin_ctzll(hits);
    }
}

#else
static inline int set_match(const uint32_t *tags, int padded_ways, uint32_t tag)
{
    for (int way = 0; way < padded_ways; way++)
        if (tags[way] == tag)
            return way;
    return -1;
}

static inline int set_oldest(const int16_t *stamps, int padded_ways)
{
    int oldest = 0;
    for (int way = 1; way < padded_ways; way++)
        if (stamps[way] < stamps[oldest])
            oldest = way;
    return oldest;
}
#endif
#endif
