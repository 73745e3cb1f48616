/* 64 bits of a bit string from any byte on, with one load. */
#ifndef BUDDYSIM_RESERVATION_TABLE_H
#define BUDDYSIM_RESERVATION_TABLE_H
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "buddysim needs a little-endian machine: it reads reservation tables byte by byte"
#endif

/* Bit i of the result is bit `bit` - `bit` % 8 + i of the string. */
static inline uint64_t bits_around(const uint64_t *string, uint64_t bit)
{
    uint64_t bits;
    memcpy(&bits, (const char *)string + (bit >> 3), sizeof bits);
    return bits;
}

/* Writes the bits back. */
static inline void set_bits_around(uint64_t *string, uint64_t bit, uint64_t bits)
{
    memcpy((char *)string + (bit >> 3), &bits, sizeof bits);
}
#endif
