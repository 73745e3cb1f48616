/* Locations of the metadata of eight lines at a time; the same as the functions of metadata_cache.pxd, which locate one. */
#ifndef BUDDYSIM_METADATA_LANES_H
#define BUDDYSIM_METADATA_LANES_H
#include "address_map_simd.h"

typedef struct {
    LaneDivisor slices, sets;               /* of the metadata cache: slices, and sets of each */
    uint32_t set_bytes;
    uint32_t line_shift, line_sectors;      /* metadata_cache.pxd describes them */
    uint32_t first_entry;
} MetadataLanes;

#ifdef LANES
LOCATE locate_metadata_simd(const LocationRules *rules, const MetadataLanes *lanes, const uint32_t *entries, OwnWords *own)
{
    const __m256i entry = _mm256_loadu_si256((const __m256i *)entries);
    const __m256i line = _mm256_srl_epi32(entry, _mm_cvtsi32_si128((int)lanes->line_shift));
    const __m256i local = lanes_divide(line, &lanes->slices), slice = lanes_swizzle(line, local, &lanes->slices);
    __m256i set = lanes_swizzle(local, lanes_divide(local, &lanes->sets), &lanes->sets), pseudo, bank, row;
    set = _mm256_add_epi32(set, lanes_multiply(slice, lanes->sets.by));
    pseudo = lanes_swizzle(line, lanes_divide(line, &rules->stripes), &rules->stripes);
    row = _mm256_srli_epi32(lanes_multiply(line, lanes->line_sectors), 2);
    row = _mm256_add_epi32(row, _mm256_set1_epi32((int)lanes->first_entry));
    lanes_locate_row(rules, pseudo, row, &bank, &row);
    _mm256_storeu_si256((__m256i *)own->shorts, bank);
    _mm256_storeu_si256((__m256i *)own->first, lanes_multiply(set, lanes->set_bytes));
    _mm256_storeu_si256((__m256i *)own->second, row);
}
#else
static inline void locate_metadata_simd(const LocationRules *rules, const MetadataLanes *lanes, const uint32_t *entries, OwnWords *own)
{
}
#endif
#endif
