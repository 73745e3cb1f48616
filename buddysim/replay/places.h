/* Where an operation's lines lie in caches and device memory, eight lines at a time.
 *
 * The same as the functions of cache.pxd, memory.pxd and compressed.pxd that find one line's place; results are offsets into the
 * engine's arrays. Needs AVX2: places_eight_at_a_time() says whether the host has it.
 */
#ifndef BUDDYSIM_PLACES_H
#define BUDDYSIM_PLACES_H
#include <stdint.h>

#define PLACES_MAX 256      /* lines of an operation */

typedef struct {            /* of an operation's lines; bytes from the start of the engine's array, unless said otherwise */
    uint32_t entry[PLACES_MAX];             /* a number */
    uint32_t slice[PLACES_MAX];             /* a number */
    uint32_t l1_set[PLACES_MAX];
    uint32_t l2_set[PLACES_MAX];
    uint32_t channel[PLACES_MAX];
    uint32_t bank[PLACES_MAX];
    uint32_t row[PLACES_MAX];               /* a number */
    uint32_t metadata_set[PLACES_MAX];
    uint32_t metadata_channel[PLACES_MAX];
    uint32_t metadata_bank[PLACES_MAX];
    uint32_t metadata_row[PLACES_MAX];      /* a number */
    int in_memory;                          /* have the places in device memory been found? */
} Places;

typedef struct {            /* Granlund and Montgomery, "Division by invariant integers using multiplication", 1994, fig. 4.1 */
    uint32_t by;
    uint32_t factor;
    int before;
    int after;
    int is_power;
} LaneDivisor;

typedef struct {
    LaneDivisor slices, slices_per_channel, l1_sets, l2_sets;
    LaneDivisor pseudo_per_slice, pieces, banks_of_group, stripes;
    LaneDivisor metadata_slices, metadata_sets;
    uint32_t l1_row_bytes, l2_row_bytes, metadata_row_bytes;
    uint32_t channel_bytes, bank_bytes;
    uint32_t banks;                         /* of a pseudo-channel */
    uint32_t bank_groups;
    uint32_t metadata_shift, metadata_sectors, metadata_entry;
    int has_metadata;
} PlaceRules;

static inline LaneDivisor lane_divisor(uint32_t by)
{
    LaneDivisor divisor = {by, 0, 0, 0, (by & (by - 1)) == 0};
    int bits = by > 1 ? 32 - __builtin_clz(by - 1) : 0;
    divisor.factor = (uint32_t)(((((uint64_t)1 << bits) - by) << 32) / by + 1);
    divisor.before = bits < 1 ? bits : 1;
    divisor.after = bits > 1 ? bits - 1 : 0;
    return divisor;
}

#if defined(__x86_64__) && defined(__GNUC__)
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

LANES __m256i lanes_times(__m256i x, uint32_t by)
{
    return _mm256_mullo_epi32(x, _mm256_set1_epi32((int)by));
}

/* x % by, where x / by is known */
LANES __m256i lanes_rest(__m256i x, __m256i quotient, const LaneDivisor *divisor)
{
    return _mm256_sub_epi32(x, lanes_times(quotient, divisor->by));
}

/* `fold` */
LANES __m256i lanes_fold(__m256i x)
{
    x = lanes_times(_mm256_xor_si256(x, _mm256_srli_epi32(x, 15)), 0x2C1B3C6Du);
    x = lanes_times(_mm256_xor_si256(x, _mm256_srli_epi32(x, 12)), 0x297A2D39u);
    return _mm256_xor_si256(x, _mm256_srli_epi32(x, 15));
}

/* `turned`: `group` is x / by. A cache's set is found so too. */
LANES __m256i lanes_turned(__m256i x, __m256i group, const LaneDivisor *divisor)
{
    const __m256i most = _mm256_set1_epi32((int)(divisor->by - 1));
    __m256i turn = lanes_fold(group), position;
    if (divisor->is_power)
        return _mm256_and_si256(_mm256_xor_si256(x, turn), most);
    turn = lanes_rest(turn, lanes_divide(turn, divisor), divisor);
    position = _mm256_add_epi32(lanes_rest(x, group, divisor), turn);   /* less than 2 by, which is less than 2^32 */
    return _mm256_min_epu32(position, _mm256_sub_epi32(position, _mm256_add_epi32(most, _mm256_set1_epi32(1))));
}

LANES void lanes_store(uint32_t *at, __m256i x)
{
    _mm256_storeu_si256((__m256i *)at, x);
}

/* `locate_row` */
LANES void lanes_locate_row(const PlaceRules *rules, __m256i pseudo, __m256i entry, uint32_t *channel, uint32_t *bank,
                            uint32_t *row_at)
{
    __m256i piece = lanes_divide(entry, &rules->pieces);
    __m256i row = lanes_divide(piece, &rules->banks_of_group);
    __m256i group = _mm256_and_si256(lanes_divide(entry, &rules->stripes), _mm256_set1_epi32((int)(rules->bank_groups - 1)));
    __m256i in_group = _mm256_and_si256(_mm256_xor_si256(piece, lanes_fold(row)),
                                        _mm256_set1_epi32((int)(rules->banks_of_group.by - 1)));
    __m256i number = _mm256_add_epi32(group, lanes_times(in_group, rules->bank_groups));
    lanes_store(channel, lanes_times(pseudo, rules->channel_bytes));
    lanes_store(bank, lanes_times(_mm256_add_epi32(number, lanes_times(pseudo, rules->banks)), rules->bank_bytes));
    lanes_store(row_at, row);
}

static __attribute__((target("avx2"), noinline, unused)) void places_locate(const PlaceRules *rules, uint32_t sm,
                                                                            const uint64_t *lines, int n, Places *places)
{
    const __m256i evens = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    const __m256i sm_sets = _mm256_set1_epi32((int)(sm * rules->l1_sets.by));
    __m256i entry, local, slice, set, pseudo, unit, line, group, low, high;
    for (int i = 0; i < n; i += 8) {
        if (n - i >= 8) {
            low = _mm256_loadu_si256((const __m256i *)(lines + i));
            high = _mm256_loadu_si256((const __m256i *)(lines + i + 4));
            low = _mm256_permutevar8x32_epi32(_mm256_srli_epi64(low, 8), evens);
            high = _mm256_permutevar8x32_epi32(_mm256_srli_epi64(high, 8), evens);
            lanes_store(places->entry + i, _mm256_permute2x128_si256(low, high, 0x20));
        } else {
            for (int j = i; j < i + 8; j++)
                places->entry[j] = j < n ? (uint32_t)(lines[j] >> 8) : 0;
        }
        entry = _mm256_loadu_si256((const __m256i *)(places->entry + i));
        local = lanes_divide(entry, &rules->slices);
        slice = lanes_turned(entry, local, &rules->slices);
        lanes_store(places->slice + i, slice);
        set = lanes_turned(local, lanes_divide(local, &rules->l2_sets), &rules->l2_sets);
        set = _mm256_add_epi32(set, lanes_times(slice, rules->l2_sets.by));
        lanes_store(places->l2_set + i, lanes_times(set, rules->l2_row_bytes));
        set = lanes_turned(entry, lanes_divide(entry, &rules->l1_sets), &rules->l1_sets);
        lanes_store(places->l1_set + i, lanes_times(_mm256_add_epi32(set, sm_sets), rules->l1_row_bytes));
        /* The device part */
        pseudo = _mm256_xor_si256(local, _mm256_xor_si256(_mm256_srli_epi32(local, 3), _mm256_srli_epi32(local, 7)));
        pseudo = lanes_rest(pseudo, lanes_divide(pseudo, &rules->pseudo_per_slice), &rules->pseudo_per_slice);
        slice = lanes_divide(slice, &rules->slices_per_channel);
        pseudo = _mm256_add_epi32(pseudo, lanes_times(slice, rules->pseudo_per_slice.by));
        lanes_locate_row(rules, pseudo, entry, places->channel + i, places->bank + i, places->row + i);
        if (!rules->has_metadata)
            continue;
        line = _mm256_srl_epi32(entry, _mm_cvtsi32_si128((int)rules->metadata_shift));
        local = lanes_divide(line, &rules->metadata_slices);
        unit = lanes_turned(line, local, &rules->metadata_slices);
        set = lanes_turned(local, lanes_divide(local, &rules->metadata_sets), &rules->metadata_sets);
        set = _mm256_add_epi32(set, lanes_times(unit, rules->metadata_sets.by));
        lanes_store(places->metadata_set + i, lanes_times(set, rules->metadata_row_bytes));
        group = lanes_divide(line, &rules->stripes);
        pseudo = lanes_turned(line, group, &rules->stripes);
        entry = _mm256_srli_epi32(lanes_times(line, rules->metadata_sectors), 2);
        entry = _mm256_add_epi32(entry, _mm256_set1_epi32((int)rules->metadata_entry));
        lanes_locate_row(rules, pseudo, entry, places->metadata_channel + i, places->metadata_bank + i, places->metadata_row + i);
    }
}

static inline int places_eight_at_a_time(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
static inline void places_locate(const PlaceRules *rules, uint32_t sm, const uint64_t *lines, int n, Places *places)
{
}

static inline int places_eight_at_a_time(void)
{
    return 0;
}
#endif
#endif
