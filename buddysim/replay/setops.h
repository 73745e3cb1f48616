/* The innermost loops: over a set's ways.
 * SSE2 is part of x86-64; elsewhere the plain loops below compile. Both give the same answers.
 * Arrays are padded to a multiple of four: tags with SET_EMPTY, stamps with INT32_MAX. */
#ifndef BUDDYSIM_SETOPS_H
#define BUDDYSIM_SETOPS_H
#include <stdint.h>

#define SET_EMPTY 0xFFFFFFFFu

#if defined(__SSE2__) && !defined(BUDDYSIM_NO_SIMD)
#include <emmintrin.h>

/* The way that holds tag, or -1. All ways are looked at, 64 at a time: where the tag lies is no branch for the host to foresee. */
static inline int set_match(const uint32_t *tags, int padded_ways, uint32_t tag)
{
    const __m128i wanted = _mm_set1_epi32((int)tag);
    for (int base = 0; base < padded_ways; base += 64) {
        const int end = padded_ways - base < 64 ? padded_ways - base : 64;
        uint64_t hits = 0;
        for (int way = 0; way < end; way += 4) {
            __m128i four = _mm_loadu_si128((const __m128i *)(tags + base + way));
            hits |= (uint64_t)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(four, wanted))) << way;
        }
        if (hits)
            return base + __builtin_ctzll(hits);
    }
    return -1;
}

/* The way with the smallest stamp; the lowest such way where several are equal. */
static inline int set_oldest(const int32_t *stamps, int padded_ways)
{
    __m128i least = _mm_loadu_si128((const __m128i *)stamps);
    for (int way = 4; way < padded_ways; way += 4) {
        __m128i four = _mm_loadu_si128((const __m128i *)(stamps + way));
        __m128i greater = _mm_cmpgt_epi32(least, four);
        least = _mm_or_si128(_mm_and_si128(greater, four), _mm_andnot_si128(greater, least));
    }
    __m128i other = _mm_shuffle_epi32(least, _MM_SHUFFLE(1, 0, 3, 2));
    __m128i greater = _mm_cmpgt_epi32(least, other);
    least = _mm_or_si128(_mm_and_si128(greater, other), _mm_andnot_si128(greater, least));
    other = _mm_shuffle_epi32(least, _MM_SHUFFLE(2, 3, 0, 1));
    greater = _mm_cmpgt_epi32(least, other);
    least = _mm_or_si128(_mm_and_si128(greater, other), _mm_andnot_si128(greater, least));
    return set_match((const uint32_t *)stamps, padded_ways, (uint32_t)_mm_cvtsi128_si32(least));
}

#else
static inline int set_match(const uint32_t *tags, int padded_ways, uint32_t tag)
{
    for (int way = 0; way < padded_ways; way++)
        if (tags[way] == tag)
            return way;
    return -1;
}

static inline int set_oldest(const int32_t *stamps, int padded_ways)
{
    int oldest = 0;
    for (int way = 1; way < padded_ways; way++)
        if (stamps[way] < stamps[oldest])
            oldest = way;
    return oldest;
}
#endif
#endif
