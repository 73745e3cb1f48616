/* Search and LRU order of the ways of a set: the innermost loops.
 * They use SSE2 on x86-64, and plain loops with equal results elsewhere.
 * Tags are padded with SET_EMPTY to four ways or a multiple of eight.
 * All ways are compared, because a CPU cannot predict a branch on the way that holds a tag. Sets of 4, 8 and 16 ways, which are most,
 * need no loop. */
#ifndef BUDDYSIM_SET_SEARCH_H
#define BUDDYSIM_SET_SEARCH_H
#include <stdint.h>
#include <string.h>

#define SET_EMPTY 0xFFFFFFFFu

/* Number of sectors in a 4-bit mask. */
static const uint8_t SECTOR_COUNT[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};

#if defined(__SSE2__) && !defined(BUDDYSIM_NO_SIMD)
#include <emmintrin.h>

/* -1 in each of eight 16-bit fields whose way has the tag. */
static inline __m128i eight_equal(const uint32_t *tags, __m128i target)
{
    const __m128i *eight = (const __m128i *)tags;
    return _mm_packs_epi32(_mm_cmpeq_epi32(_mm_load_si128(eight), target),
                           _mm_cmpeq_epi32(_mm_load_si128(eight + 1), target));
}

/* One bit for each of 8 or 16 ways. */
static inline uint64_t way_bits(__m128i low, __m128i high)
{
    return (uint64_t)_mm_movemask_epi8(_mm_packs_epi16(low, high));
}

/* set_match for any number of ways, 64 at a time. */
static __attribute__((noinline)) int64_t set_match_any(const uint32_t *tags, int padded_ways, uint32_t tag)
{
    const __m128i target = _mm_set1_epi32((int)tag), none = _mm_setzero_si128();
    for (int base = 0; base < padded_ways; base += 64) {
        const int end = padded_ways - base < 64 ? padded_ways - base : 64;
        uint64_t hits = 0;
        for (int way = 0; way < end; way += 8)
            hits |= way_bits(eight_equal(tags + base + way, target), none) << way;
        if (hits)
            return base + __builtin_ctzll(hits);
    }
    return -1;
}

/* The way that holds a tag, or -1. */
static inline int64_t set_match(const uint32_t *tags, int padded_ways, uint32_t tag)
{
    const __m128i target = _mm_set1_epi32((int)tag);
    uint64_t hits;
    if (padded_ways == 4)
        hits = (uint64_t)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(_mm_loadu_si128((const __m128i *)tags), target)));
    else if (padded_ways == 8)
        hits = way_bits(eight_equal(tags, target), _mm_setzero_si128());
    else if (padded_ways == 16)
        hits = way_bits(eight_equal(tags, target), eight_equal(tags + 8, target));
    else
        return set_match_any(tags, padded_ways, tag);
    return hits ? __builtin_ctzll(hits) : -1;
}

/* Position of a way in an order of 16-bit numbers. */
static inline int order_find(const uint16_t *order, int way)
{
    const __m128i target = _mm_set1_epi16((short)way);
    for (int position = 0;; position += 8) {
        const int hits = _mm_movemask_epi8(_mm_cmpeq_epi16(_mm_loadu_si128((const __m128i *)(order + position)), target));
        if (hits)
            return position + __builtin_ctz((unsigned)hits) / 2;
    }
}

#else
static inline int64_t set_match(const uint32_t *tags, int padded_ways, uint32_t tag)
{
    for (int way = 0; way < padded_ways; way++)
        if (tags[way] == tag)
            return way;
    return -1;
}

static inline int order_find(const uint16_t *order, int way)
{
    int position = 0;
    while (order[position] != way)
        position++;
    return position;
}
#endif

/* Shifts four numbers by one: the first one becomes `first`, the last one is dropped. No call of memmove, and loads of the width of the
 * stores, so that a CPU forwards them. */
static inline void push_number(uint32_t *four, uint32_t first)
{
#if defined(__SSE2__) && !defined(BUDDYSIM_NO_SIMD)
    const __m128i moved = _mm_slli_si128(_mm_loadu_si128((const __m128i *)four), 4);
    _mm_storeu_si128((__m128i *)four, _mm_or_si128(moved, _mm_cvtsi32_si128((int)first)));
#else
    memmove(four + 1, four, 3 * sizeof *four);
    four[0] = first;
#endif
}

static inline void push_time(int64_t *four, int64_t first)
{
#if defined(__SSE2__) && !defined(BUDDYSIM_NO_SIMD)
    const __m128d low = _mm_loadu_pd((const double *)four), high = _mm_loadu_pd((const double *)four + 2);
    _mm_storeu_pd((double *)four, _mm_unpacklo_pd(_mm_castsi128_pd(_mm_cvtsi64_si128(first)), low));
    _mm_storeu_pd((double *)four + 2, _mm_shuffle_pd(low, high, 1));
#else
    memmove(four + 1, four, 3 * sizeof *four);
    four[0] = first;
#endif
}

/* The LRU order of a set, most recently used first, in two bytes per way.
 * Up to 16 ways are nibbles of one word, from the lowest one on; bits above them are stale. More ways are 16-bit numbers. */
#define ORDER_NIBBLES 16

static inline uint64_t order_word(const char *order)
{
    uint64_t word;
    memcpy(&word, order, sizeof word);
    return word;
}

static inline void order_set_word(char *order, uint64_t word)
{
    memcpy(order, &word, sizeof word);
}

/* Initial order of an unused set. */
static inline void order_init(char *order, int ways)
{
    uint64_t word = 0;
    for (int way = 0; way < ways; way++)
        if (ways <= ORDER_NIBBLES)
            word |= (uint64_t)way << 4 * way;
        else
            ((uint16_t *)order)[way] = (uint16_t)way;
    if (ways <= ORDER_NIBBLES)
        order_set_word(order, word);
}

/* Makes the least recently used way the most recently used one, and returns it; `oldest_bit` is 4 * (ways - 1). */
static inline int64_t order_touch_oldest(char *order, int ways, int oldest_bit)
{
    uint64_t word, oldest;
    if (ways <= ORDER_NIBBLES) {
        word = order_word(order);
        oldest = word >> oldest_bit & 15;
        order_set_word(order, word << 4 | oldest);
    } else {
        oldest = ((const uint16_t *)order)[ways - 1];
        memmove(order + 2, order, 2 * ((size_t)ways - 1));
        *(uint16_t *)order = (uint16_t)oldest;
    }
    return (int64_t)oldest;
}

/* Makes a way the most recently used one. */
static inline void order_touch(char *order, int ways, int64_t way)
{
    const uint64_t ones = 0x1111111111111111u;
    uint64_t word, differ, upto;
    if (ways <= ORDER_NIBBLES) {
        word = order_word(order);
        differ = word ^ ones * (uint64_t)way;
        upto = (differ - ones) & ~differ & ones << 3;   /* its lowest bit is the top bit of the first nibble equal to the way */
        upto ^= upto - 1;                               /* bits of that nibble and those below it */
        order_set_word(order, (word & ~upto) | ((word << 4 | (uint64_t)way) & upto));
    } else {
        memmove(order + 2, order, 2 * (size_t)order_find((const uint16_t *)order, (int)way));
        *(uint16_t *)order = (uint16_t)way;
    }
}

/* The way at a position of the order. */
static inline int64_t order_at(const char *order, int ways, int position)
{
    return ways <= ORDER_NIBBLES ? (int64_t)(order_word(order) >> 4 * position & 15) : ((const uint16_t *)order)[position];
}
#endif
