/* 64 bits of a bit string from any bit on, less up to seven at the top: one load, wherever the words' borders are. */
#ifndef BUDDYSIM_CALENDAR_H
#define BUDDYSIM_CALENDAR_H
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "buddysim needs a little-endian machine: the bus calendar is looked at byte by byte"
#endif

/* Of these, bit i is bit `bit` + i of the string, for i < CALENDAR_WINDOW. */
#define CALENDAR_WINDOW 57

static inline uint64_t bits_from(const uint64_t *string, uint64_t bit)
{
    uint64_t word;
    memcpy(&word, (const char *)string + (bit >> 3), sizeof word);
    return word >> (bit & 7);
}

/* Sets bits, numbered as bits_from gives them. */
static inline void add_bits(uint64_t *string, uint64_t bit, uint64_t bits)
{
    uint64_t word;
    memcpy(&word, (const char *)string + (bit >> 3), sizeof word);
    word |= bits << (bit & 7);
    memcpy((char *)string + (bit >> 3), &word, sizeof word);
}
#endif
