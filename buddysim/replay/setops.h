/* The innermost loops: over a set's ways.
 * SSE2 is part of x86-64; elsewhere the plain loops below compile. Both give the same answers.
 * Rows are padded to four ways or a multiple of eight: tags with SET_EMPTY, stamps with STAMP_NEVER.
 * Every way is looked at: where a tag or the least stamp lies is no branch that a host could foresee. Sets of 4, 8 and 16
 * ways, which is most of them, go straight. */
#ifndef BUDDYSIM_SETOPS_H
#define BUDDYSIM_SETOPS_H
#include <stdint.h>

#define SET_EMPTY 0xFFFFFFFFu
#define STAMP_NEVER INT16_MAX

/* Number of sectors in a 4-bit mask. */
static const uint8_t SECTOR_COUNT[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};

#if defined(__SSE2__) && !defined(BUDDYSIM_NO_SIMD)
#include <emmintrin.h>

/* -1 in each of eight 16-bit fields where the way has the tag. */
static inline __m128i eight_equal(const uint32_t *tags, __m128i wanted)
{
    const __m128i *eight = (const __m128i *)tags;
    return _mm_packs_epi32(_mm_cmpeq_epi32(_mm_load_si128(eight), wanted),
                           _mm_cmpeq_epi32(_mm_load_si128(eight + 1), wanted));
}

/* A bit for each of eight, or sixteen, ways. */
static inline uint64_t way_bits(__m128i low, __m128i high)
{
    return (uint64_t)_mm_movemask_epi8(_mm_packs_epi16(low, high));
}

/* The least of eight stamps, in all fields. */
static inline __m128i least_of_eight(__m128i stamps)
{
    stamps = _mm_min_epi16(stamps, _mm_shuffle_epi32(stamps, _MM_SHUFFLE(1, 0, 3, 2)));
    stamps = _mm_min_epi16(stamps, _mm_shuffle_epi32(stamps, _MM_SHUFFLE(2, 3, 0, 1)));
    return _mm_min_epi16(stamps, _mm_shufflehi_epi16(_mm_shufflelo_epi16(stamps, _MM_SHUFFLE(2, 3, 0, 1)),
                                                     _MM_SHUFFLE(2, 3, 0, 1)));
}

/* set_match and set_oldest for any number of ways, 64 at a time. */
static __attribute__((noinline)) int64_t set_match_any(const uint32_t *tags, int padded_ways, uint32_t tag)
{
    const __m128i wanted = _mm_set1_epi32((int)tag), none = _mm_setzero_si128();
    for (int base = 0; base < padded_ways; base += 64) {
        const int end = padded_ways - base < 64 ? padded_ways - base : 64;
        uint64_t hits = 0;
        for (int way = 0; way < end; way += 8)
            hits |= way_bits(eight_equal(tags + base + way, wanted), none) << way;
        if (hits)
            return base + __builtin_ctzll(hits);
    }
    return -1;
}

static __attribute__((noinline)) int64_t set_oldest_any(const int16_t *stamps, int padded_ways)
{
    const __m128i none = _mm_setzero_si128();
    __m128i least = _mm_load_si128((const __m128i *)stamps);
    for (int way = 8; way < padded_ways; way += 8)
        least = _mm_min_epi16(least, _mm_load_si128((const __m128i *)(stamps + way)));
    least = least_of_eight(least);
    for (int base = 0;; base += 64) {
        const int end = padded_ways - base < 64 ? padded_ways - base : 64;
        uint64_t hits = 0;
        for (int way = 0; way < end; way += 8) {
            __m128i equal = _mm_cmpeq_epi16(_mm_load_si128((const __m128i *)(stamps + base + way)), least);
            hits |= way_bits(equal, none) << way;
        }
        if (hits)
            return base + __builtin_ctzll(hits);
    }
}

/* The way that holds tag, or -1. */
static inline int64_t set_match(const uint32_t *tags, int padded_ways, uint32_t tag)
{
    const __m128i wanted = _mm_set1_epi32((int)tag);
    uint64_t hits;
    if (padded_ways == 4)
        hits = (uint64_t)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(_mm_load_si128((const __m128i *)tags), wanted)));
    else if (padded_ways == 8)
        hits = way_bits(eight_equal(tags, wanted), _mm_setzero_si128());
    else if (padded_ways == 16)
        hits = way_bits(eight_equal(tags, wanted), eight_equal(tags + 8, wanted));
    else
        return set_match_any(tags, padded_ways, tag);
    return hits ? __builtin_ctzll(hits) : -1;
}

/* The way with the smallest stamp; the lowest such way where several are equal. */
static inline int64_t set_oldest(const int16_t *stamps, int padded_ways)
{
    __m128i first, second, least;
    if (padded_ways == 4) {
        /* The upper half, which is zero, must not win. */
        first = _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)stamps), _mm_set1_epi16(STAMP_NEVER));
        return __builtin_ctzll(way_bits(_mm_cmpeq_epi16(first, least_of_eight(first)), _mm_setzero_si128()));
    }
    first = _mm_load_si128((const __m128i *)stamps);
    if (padded_ways == 8)
        return __builtin_ctzll(way_bits(_mm_cmpeq_epi16(first, least_of_eight(first)), _mm_setzero_si128()));
    if (padded_ways != 16)
        return set_oldest_any(stamps, padded_ways);
    second = _mm_load_si128((const __m128i *)(stamps + 8));
    least = least_of_eight(_mm_min_epi16(first, second));
    return __builtin_ctzll(way_bits(_mm_cmpeq_epi16(first, least), _mm_cmpeq_epi16(second, least)));
}

#else
static inline int64_t set_match(const uint32_t *tags, int padded_ways, uint32_t tag)
{
    for (int way = 0; way < padded_ways; way++)
        if (tags[way] == tag)
            return way;
    return -1;
}

static inline int64_t set_oldest(const int16_t *stamps, int padded_ways)
{
    int oldest = 0;
    for (int way = 1; way < padded_ways; way++)
        if (stamps[way] < stamps[oldest])
            oldest = way;
    return oldest;
}
#endif
#endif
