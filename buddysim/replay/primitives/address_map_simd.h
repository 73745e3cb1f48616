/* Where lines lie in caches and device memory, eight lines at a time.
 *
 * The same as the functions of address_map.pxd, which find one line's location; results are offsets into the engine's arrays. Needs AVX2:
 * locates_eight_at_a_time() says whether the CPU has it.
 */
#ifndef BUDDYSIM_ADDRESS_MAP_SIMD_H
#define BUDDYSIM_ADDRESS_MAP_SIMD_H
#include <stdint.h>
#include <string.h>

#include "processor.h"

typedef struct {            /* address_map_simd.pxd describes the fields */
    uint32_t entry;
    uint32_t masks : 8;
    uint32_t size_class : 3;
    uint32_t slice : 21;
    uint32_t l1_set;
    uint32_t l2_set;
    uint32_t row;
    uint16_t bank;
    uint16_t own_short;
    uint32_t own[2];
} LineLocation;

typedef struct {
    uint32_t shorts[8], first[8], second[8];
} OwnWords;

/* Initializes a line's location from its word: size_class << 40 | entry << 8 | masks. */
static inline void location_begin(LineLocation *location, uint64_t line)
{
    const uint64_t entry_and_masks = (uint32_t)(line >> 8) | (line & 0xFF) << 32 | (line & (uint64_t)7 << 40);
    memcpy(location, &entry_and_masks, sizeof entry_and_masks);
}

typedef struct {            /* Granlund and Montgomery, "Division by invariant integers using multiplication", 1994, fig. 4.1 */
    uint32_t by;
    uint32_t factor;
    int before;
    int after;
    int is_power;
} LaneDivisor;

/* Writes the slices of up to eight units of consecutive lines. */
typedef void (*SlicesOp)(const void *state, const uint32_t *units, int n, uint32_t *slices);

/* Writes words of a scheme's own of up to eight lines. */
typedef void (*LocateOwnOp)(const void *state, const uint32_t *entries, int n, OwnWords *own);

typedef struct {
    LaneDivisor slices, slices_per_channel, l1_sets, l2_sets;
    LaneDivisor pseudo_per_slice, row_stripes, banks_of_group, stripes;
    uint32_t l1_set_bytes, l2_set_bytes;
    uint32_t banks;                         /* of a pseudo-channel */
    uint32_t bank_groups;
    uint32_t interleave_shift;              /* log2 of the consecutive lines in one slice */
    SlicesOp slices_of;                     /* NULL: lanes_swizzle */
    const void *slice_hash;                 /* its first argument */
    LocateOwnOp locate_own;                 /* NULL: the scheme has no words of its own */
    const void *own_state;                  /* its first argument */
} LocationRules;

static inline LaneDivisor lane_divisor(uint32_t by)
{
    LaneDivisor divisor = {by, 0, 0, 0, (by & (by - 1)) == 0};
    int bits = by > 1 ? 32 - __builtin_clz(by - 1) : 0;
    divisor.factor = (uint32_t)(((((uint64_t)1 << bits) - by) << 32) / by + 1);
    divisor.before = bits < 1 ? bits : 1;
    divisor.after = bits > 1 ? bits - 1 : 0;
    return divisor;
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(BUDDYSIM_NO_SIMD)
#include <immintrin.h>
#define LANES static inline __attribute__((target("avx2"), always_inline))

LANES __m256i lanes_high_product(__m256i x, __m256i factor)
{
    __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(x, factor), 32);
    __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), factor);
    return _mm256_blend_epi32(even, odd, 0xAA);
}

LANES __m256i lanes_divide(__m256i x, const LaneDivisor *divisor)
{
    __m256i high;
    if (divisor->is_power)
        return _mm256_srl_epi32(x, _mm_cvtsi32_si128(divisor->before + divisor->after));
    high = lanes_high_product(x, _mm256_set1_epi32((int)divisor->factor));
    x = _mm256_srl_epi32(_mm256_sub_epi32(x, high), _mm_cvtsi32_si128(divisor->before));
    return _mm256_srl_epi32(_mm256_add_epi32(high, x), _mm_cvtsi32_si128(divisor->after));
}

LANES __m256i lanes_multiply(__m256i x, uint32_t by)
{
    return _mm256_mullo_epi32(x, _mm256_set1_epi32((int)by));
}

/* x % by, where x / by is known */
LANES __m256i lanes_remainder(__m256i x, __m256i quotient, const LaneDivisor *divisor)
{
    return _mm256_sub_epi32(x, lanes_multiply(quotient, divisor->by));
}

/* `hash_u32` */
LANES __m256i lanes_fold(__m256i x)
{
    x = lanes_multiply(_mm256_xor_si256(x, _mm256_srli_epi32(x, 15)), 0x2C1B3C6Du);
    x = lanes_multiply(_mm256_xor_si256(x, _mm256_srli_epi32(x, 12)), 0x297A2D39u);
    return _mm256_xor_si256(x, _mm256_srli_epi32(x, 15));
}

/* `swizzle`: `group` is x / by. The set of a cache is chosen in the same way. */
LANES __m256i lanes_swizzle(__m256i x, __m256i group, const LaneDivisor *divisor)
{
    const __m256i mask = _mm256_set1_epi32((int)(divisor->by - 1));
    __m256i rotation = lanes_fold(group), position;
    if (divisor->is_power)
        return _mm256_and_si256(_mm256_xor_si256(x, rotation), mask);
    rotation = lanes_remainder(rotation, lanes_divide(rotation, divisor), divisor);
    position = _mm256_add_epi32(lanes_remainder(x, group, divisor), rotation);   /* less than 2 by, which is less than 2^32 */
    return _mm256_min_epu32(position, _mm256_sub_epi32(position, _mm256_add_epi32(mask, _mm256_set1_epi32(1))));
}

/* Index of a run of consecutive lines in one slice. */
LANES __m256i lanes_interleave_unit(const LocationRules *rules, __m256i entry)
{
    return _mm256_srl_epi32(entry, _mm_cvtsi32_si128((int)rules->interleave_shift));
}

/* `index_in_slice` */
LANES __m256i lanes_index_in_slice(const LocationRules *rules, __m256i entry, __m256i group)
{
    const __m256i mask = _mm256_set1_epi32((1 << rules->interleave_shift) - 1);
    group = _mm256_sll_epi32(group, _mm_cvtsi32_si128((int)rules->interleave_shift));
    return _mm256_or_si256(group, _mm256_and_si256(entry, mask));
}

/* `locate_row` */
LANES void lanes_locate_row(const LocationRules *rules, __m256i pseudo, __m256i entry, __m256i *bank, __m256i *row)
{
    __m256i row_stripe = lanes_divide(entry, &rules->row_stripes), unit = lanes_interleave_unit(rules, entry);
    __m256i group = _mm256_and_si256(lanes_divide(unit, &rules->stripes), _mm256_set1_epi32((int)(rules->bank_groups - 1)));
    __m256i in_group;
    *row = lanes_divide(row_stripe, &rules->banks_of_group);
    in_group = _mm256_and_si256(_mm256_xor_si256(row_stripe, lanes_fold(*row)), _mm256_set1_epi32((int)(rules->banks_of_group.by - 1)));
    group = _mm256_add_epi32(group, lanes_multiply(in_group, rules->bank_groups));
    *bank = _mm256_add_epi32(group, lanes_multiply(pseudo, rules->banks));
}

/* Transposes eight vectors of one field into eight lines of eight fields. */
LANES void lanes_transpose(__m256i *x)
{
    __m256i pairs[8], fours[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        pairs[i] = _mm256_unpacklo_epi32(x[2 * i], x[2 * i + 1]);
        pairs[4 + i] = _mm256_unpackhi_epi32(x[2 * i], x[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        fours[i] = _mm256_unpacklo_epi64(pairs[2 * i], pairs[2 * i + 1]);
        fours[4 + i] = _mm256_unpackhi_epi64(pairs[2 * i], pairs[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {           /* both halves of lines 0, 2, 1, 3 and of 4, 6, 5, 7 */
        const int line = (i & 1) << 1 | i >> 1;
        x[line] = _mm256_permute2x128_si256(fours[2 * i], fours[2 * i + 1], 0x20);
        x[line + 4] = _mm256_permute2x128_si256(fours[2 * i], fours[2 * i + 1], 0x31);
    }
}

/* Slices by the machine's own hash */
LANES __m256i lanes_slices(const LocationRules *rules, __m256i unit)
{
    uint32_t units[8], slices[8];
    _mm256_storeu_si256((__m256i *)units, unit);
    rules->slices_of(rules->slice_hash, units, 8, slices);
    return _mm256_loadu_si256((const __m256i *)slices);
}

/* Words of the scheme's own, by its hook */
LANES void lanes_own(const LocationRules *rules, __m256i entry, OwnWords *own)
{
    uint32_t entries[8];
    _mm256_storeu_si256((__m256i *)entries, entry);
    rules->locate_own(rules->own_state, entries, 8, own);
}

/* Writes the locations of eight lines; `masks` are size_class << 8 | masks. */
LANES void lanes_locate(const LocationRules *rules, __m256i entry, __m256i masks, LineLocation *const *locations)
{
    __m256i unit = lanes_interleave_unit(rules, entry), group = lanes_divide(unit, &rules->slices);
    __m256i local = lanes_index_in_slice(rules, entry, group), set, pseudo, slice, x[8];
    OwnWords own;
    if (rules->locate_own)                  /* first, while few vectors are live */
        lanes_own(rules, entry, &own);
    if (__builtin_expect(rules->slices_of != 0, 0))
        slice = lanes_slices(rules, unit);
    else
        slice = lanes_swizzle(unit, group, &rules->slices);
    x[0] = entry;
    x[1] = _mm256_or_si256(masks, _mm256_slli_epi32(slice, 11));
    set = lanes_swizzle(entry, lanes_divide(entry, &rules->l1_sets), &rules->l1_sets);
    x[2] = lanes_multiply(set, rules->l1_set_bytes);
    set = lanes_swizzle(local, lanes_divide(local, &rules->l2_sets), &rules->l2_sets);
    set = _mm256_add_epi32(set, lanes_multiply(slice, rules->l2_sets.by));
    x[3] = lanes_multiply(set, rules->l2_set_bytes);
    pseudo = _mm256_xor_si256(local, _mm256_xor_si256(_mm256_srli_epi32(local, 3), _mm256_srli_epi32(local, 7)));
    pseudo = lanes_remainder(pseudo, lanes_divide(pseudo, &rules->pseudo_per_slice), &rules->pseudo_per_slice);
    slice = lanes_divide(slice, &rules->slices_per_channel);
    pseudo = _mm256_add_epi32(pseudo, lanes_multiply(slice, rules->pseudo_per_slice.by));
    lanes_locate_row(rules, pseudo, entry, &x[5], &x[4]);
    x[6] = x[7] = _mm256_setzero_si256();
    if (rules->locate_own) {
        x[5] = _mm256_or_si256(x[5], _mm256_slli_epi32(_mm256_loadu_si256((const __m256i *)own.shorts), 16));
        x[6] = _mm256_loadu_si256((const __m256i *)own.first);
        x[7] = _mm256_loadu_si256((const __m256i *)own.second);
    }
    lanes_transpose(x);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        _mm256_storeu_si256((__m256i *)locations[i], x[i]);
}

#define LOCATE static __attribute__((target("avx2"), noinline, unused)) void

/* Locates an operation's lines, words of size_class << 40 | entry << 8 | masks; writes a multiple of eight locations. */
LOCATE locate_lines_simd(const LocationRules *rules, const uint64_t *lines, int n, LineLocation *locations)
{
    const __m256i evens = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    __m256i low, high, entry, masks, size_class;
    uint64_t last[8];
    for (int i = 0; i < n; i += 8, lines += 8, locations += 8) {
        LineLocation *const eight[8] = {locations, locations + 1, locations + 2, locations + 3, locations + 4, locations + 5, locations + 6, locations + 7};
        if (n - i < 8) {
            for (int j = 0; j < 8; j++)
                last[j] = lines[j < n - i ? j : 0];
            lines = last;
        }
        low = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)lines), evens);
        high = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)(lines + 4)), evens);
        masks = _mm256_permute2x128_si256(low, high, 0x20);
        entry = _mm256_permute2x128_si256(low, high, 0x31);
        size_class = _mm256_and_si256(entry, _mm256_set1_epi32(7 << 8));
        entry = _mm256_or_si256(_mm256_srli_epi32(masks, 8), _mm256_slli_epi32(entry, 24));
        lanes_locate(rules, entry, _mm256_or_si256(_mm256_and_si256(masks, _mm256_set1_epi32(0xFF)), size_class), eight);
    }
}

/* Completes eight locations; entry, masks and size class are set. */
LOCATE complete_locations_simd(const LocationRules *rules, LineLocation *const *locations)
{
    uint32_t entry[8], masks[8];
    for (int i = 0; i < 8; i++)
        entry[i] = locations[i]->entry, masks[i] = locations[i]->masks | locations[i]->size_class << 8;
    lanes_locate(rules, _mm256_loadu_si256((const __m256i *)entry), _mm256_loadu_si256((const __m256i *)masks), locations);
}

static inline int has_eight_lane_lookup(void)
{
    return processor_has("avx2");
}
#else
static inline void locate_lines_simd(const LocationRules *rules, const uint64_t *lines, int n, LineLocation *locations)
{
}

static inline void complete_locations_simd(const LocationRules *rules, LineLocation *const *locations)
{
}

static inline int has_eight_lane_lookup(void)
{
    return 0;
}
#endif
#endif
