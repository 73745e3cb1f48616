/* 64 bits of a bit string from any byte on: one load, wherever the words' borders are. */
#ifndef BUDDYSIM_RESERVATION_TABLE_H
#define BUDDYSIM_RESERVATION_TABLE_H
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "buddysim needs a little-endian machine: calendars are looked at byte by byte"
#endif

/* Bit i of these is bit `bit` - `bit` % 8 + i of the string. */
static inline uint64_t bits_around(const uint64_t *string, uint64_t bit)
{
    uint64_t bits;
    memcpy(&bits, (const char *)string + (bit >> 3), sizeof bits);
    return bits;
}

/* Writes them back. */
static inline void set_bits_around(uint64_t *string, uint64_t bit, uint64_t bits)
{
    memcpy((char *)string + (bit >> 3), &bits, sizeof bits);
}
#endif
