/* The earliest of many events, by their keys: time << bits | number, so that equal times are ordered by number.
 *
 * Keys are compared in pairs, as floating-point numbers, because SSE2 has a minimum of those. Positive numbers are ordered like their
 * bits. KEY_BIAS makes all keys normal numbers, which no mode of the processor changes. */
#ifndef BUDDYSIM_KEYS_H
#define BUDDYSIM_KEYS_H
#include <stdint.h>

#define KEY_BIAS ((int64_t)1 << 62)
#define KEY_NEVER ((int64_t)0x7FEFFFFFFFFFFFFF)     /* the largest finite number */
#define KEYS_AT_ONCE 8

#if defined(__SSE2__) && !defined(BUDDYSIM_NO_SIMD)
#include <emmintrin.h>

/* The smallest of `n` keys, n > 0; they are aligned to 16 B and padded to a multiple of KEYS_AT_ONCE. */
static inline int64_t min_key(const int64_t *keys, int n)
{
    const double *at = (const double *)keys, *const end = at + n;
    __m128d a = _mm_load_pd(at), b = _mm_load_pd(at + 2);
    a = _mm_min_pd(a, _mm_load_pd(at + 4));
    b = _mm_min_pd(b, _mm_load_pd(at + 6));
    for (at += KEYS_AT_ONCE; at < end; at += KEYS_AT_ONCE) {
        a = _mm_min_pd(a, _mm_load_pd(at));
        b = _mm_min_pd(b, _mm_load_pd(at + 2));
        a = _mm_min_pd(a, _mm_load_pd(at + 4));
        b = _mm_min_pd(b, _mm_load_pd(at + 6));
    }
    a = _mm_min_pd(a, b);
    a = _mm_min_pd(a, _mm_unpackhi_pd(a, a));
    return _mm_cvtsi128_si64(_mm_castpd_si128(a));
}

#else
static inline int64_t min_key(const int64_t *keys, int n)
{
    int64_t smallest = keys[0];
    for (int i = 1; i < n; i++)
        smallest = keys[i] < smallest ? keys[i] : smallest;
    return smallest;
}
#endif
#endif
