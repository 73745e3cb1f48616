/* BPC sizes of LANES entries at once, one entry per 32-bit lane of a vector: included by bpc_sizes.h once per width.
 * LANES: 4 or 8; NAME(x): x with the width's suffix; TARGET: the function attribute that allows its instructions.
 *
 * No plane is ever built. A plane's code depends only on whether it holds no one, exactly one, exactly two (neighbours or
 * not) or only ones, and each of these is a bitwise sum over the deltas: bit c of `one` is set where plane c has a one, of
 * `two` where it has two, and so on. DBX is the transpose of e = d ^ d >> 1, DBP that of d. */

typedef uint32_t NAME(u32) __attribute__((vector_size(4 * LANES)));
typedef int32_t NAME(i32) __attribute__((vector_size(4 * LANES)));

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (NAME(u32)){__VA_ARGS__})
#endif

#if LANES == 8
#define LOW_HALVES(a, b) SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define HIGH_HALVES(a, b) SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#define INTERLEAVE_LOW(a, b) SHUFFLE(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define INTERLEAVE_HIGH(a, b) SHUFFLE(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define PAIRS_LOW(a, b) SHUFFLE(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define PAIRS_HIGH(a, b) SHUFFLE(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#else
#define INTERLEAVE_LOW(a, b) SHUFFLE(a, b, 0, 4, 1, 5)
#define INTERLEAVE_HIGH(a, b) SHUFFLE(a, b, 2, 6, 3, 7)
#define PAIRS_LOW(a, b) SHUFFLE(a, b, 0, 1, 4, 5)
#define PAIRS_HIGH(a, b) SHUFFLE(a, b, 2, 3, 6, 7)
#endif

/* Rows of four words of an entry (per 128-bit part) to four vectors of one word number each. */
#define TRANSPOSE_4X4(out, a, b, c, d)                                                                                 \
    do {                                                                                                               \
        NAME(u32) low_ab = INTERLEAVE_LOW(a, b), low_cd = INTERLEAVE_LOW(c, d);                                        \
        NAME(u32) high_ab = INTERLEAVE_HIGH(a, b), high_cd = INTERLEAVE_HIGH(c, d);                                    \
        (out)[0] = PAIRS_LOW(low_ab, low_cd);                                                                          \
        (out)[1] = PAIRS_HIGH(low_ab, low_cd);                                                                         \
        (out)[2] = PAIRS_LOW(high_ab, high_cd);                                                                        \
        (out)[3] = PAIRS_HIGH(high_ab, high_cd);                                                                       \
    } while (0)

/* words[i]: word i of each of LANES neighbouring entries. */
TARGET static inline void NAME(load_words)(const uint8_t *data, NAME(u32) *words)
{
    for (int first = 0; first < 32; first += LANES) {
        NAME(u32) rows[LANES];
        for (int entry = 0; entry < LANES; entry++)
            memcpy(&rows[entry], data + 128 * entry + 4 * first, sizeof(rows[entry]));
#if LANES == 8
        NAME(u32) left[4], right[4];
        for (int entry = 0; entry < 4; entry++) {
            left[entry] = LOW_HALVES(rows[entry], rows[entry + 4]);
            right[entry] = HIGH_HALVES(rows[entry], rows[entry + 4]);
        }
        TRANSPOSE_4X4(words + first, left[0], left[1], left[2], left[3]);
        TRANSPOSE_4X4(words + first + 4, right[0], right[1], right[2], right[3]);
#else
        TRANSPOSE_4X4(words + first, rows[0], rows[1], rows[2], rows[3]);
#endif
    }
}

/* How many ones each byte of v has. */
#define BYTE_ONES(result, v)                                                                                           \
    do {                                                                                                               \
        NAME(u32) ones_ = (v) - ((v) >> 1 & 0x55555555u);                                                              \
        ones_ = (ones_ & 0x33333333u) + (ones_ >> 2 & 0x33333333u);                                                    \
        (result) = (ones_ + (ones_ >> 4)) & 0x0F0F0F0Fu;                                                               \
    } while (0)

/* Bits of LANES entries. */
TARGET static inline NAME(u32) NAME(sizes_of)(const NAME(u32) *words, uint32_t flip)
{
    const NAME(u32) none = {0};
    NAME(u32) one = none, two = none, three = none, neighbours = none, all = ~none, delta_ones = none, signs = none;
    NAME(u32) before = none, word = words[0];
    for (int r = 0; r < 31; r++) {
        NAME(u32) next = words[r + 1];
        NAME(u32) delta = next - word;
        NAME(u32) negative = (NAME(u32))((NAME(i32))(next ^ flip) < (NAME(i32))(word ^ flip));
        NAME(u32) e = delta ^ delta >> 1 ^ (negative & 0x80000000u);
        three |= two & e;
        two |= one & e;
        one |= e;
        all &= e;
        neighbours |= e & before;
        delta_ones |= delta;
        signs += signs - negative;
        before = e;
        word = next;
    }
    /* Planes 31 to 0 by the kind of their code. */
    NAME(u32) five = one & (all | ~delta_ones);
    NAME(u32) ten = ((one & ~two) | (two & ~three & neighbours)) & ~five;
    NAME(u32) verbatim = one & ~five & ~ten;

    /* Plane 32, whose 31 bits are `signs` (its order reversed: no code's length depends on that). */
    NAME(u32) top_zero = (NAME(u32))(signs == 0);
    NAME(u32) lowest = signs & -signs;
    NAME(u32) top_ten = (NAME(u32))(signs == lowest) | (NAME(u32))(signs == 3 * lowest);
    NAME(u32) top_five = (NAME(u32))(signs == 0x7FFFFFFFu);
    NAME(u32) bits = (top_ten & 10) | (top_five & 5) | (~(top_ten | top_five) & 32);

    /* Runs of zero planes, from plane 32 down: 7 bits each, 3 where the run is one plane long. */
    NAME(u32) zero = ~one;
    NAME(u32) starts = zero & ~(zero >> 1 | (top_zero & 0x80000000u));
    NAME(u32) alone = starts & ~(zero << 1);
    NAME(u32) top_alone = ~(NAME(u32))((NAME(i32))zero >> 31);
    bits = (top_zero & (7 - (top_alone & 4))) | (~top_zero & bits);

    /* Weighted counts: a byte of five, ten and verbatim holds at most 8 ones in all, so 5, 10 and 32 of each fit 16 bits. */
    NAME(u32) n_five, n_ten, n_verbatim, n_starts, n_alone;
    BYTE_ONES(n_five, five);
    BYTE_ONES(n_ten, ten);
    BYTE_ONES(n_verbatim, verbatim);
    BYTE_ONES(n_starts, starts);
    BYTE_ONES(n_alone, alone);
    NAME(u32) small = n_five * 5 + n_ten * 10 + n_starts * 7 - n_alone * 4;
    small = (small & 0x00FF00FFu) + (small >> 8 & 0x00FF00FFu);
    n_verbatim = (n_verbatim + (n_verbatim >> 8)) & 0x00FF00FFu;
    small += n_verbatim << 5;
    bits += (small & 0xFFFFu) + (small >> 16);

    /* The base; an unsigned word of 2^31 and more is no small number. */
    NAME(u32) base = words[0];
    NAME(u32) is_number = (NAME(u32))((base & flip) == 0);
    NAME(u32) fits_4 = is_number & (NAME(u32))(((base + 8u) & ~15u) == 0);
    NAME(u32) fits_8 = is_number & (NAME(u32))(((base + 128u) & ~255u) == 0);
    NAME(u32) fits_16 = is_number & (NAME(u32))(((base + 32768u) & ~65535u) == 0);
    NAME(u32) is_zero = (NAME(u32))(base == 0);
    return bits + 33 - (fits_16 & 14) - (fits_8 & 8) - (fits_4 & 4) - (is_zero & 4);
}

TARGET static void NAME(sizes)(const uint8_t *data, int64_t groups, uint32_t flip, uint32_t *bits)
{
    for (int64_t group = 0; group < groups; group++) {
        NAME(u32) words[32];
        NAME(load_words)(data + group * LANES * 128, words);
        NAME(u32) sizes = NAME(sizes_of)(words, flip);
        memcpy(bits + group * LANES, &sizes, sizeof(sizes));
    }
}

#undef SHUFFLE
#undef LOW_HALVES
#undef HIGH_HALVES
#undef INTERLEAVE_LOW
#undef INTERLEAVE_HIGH
#undef PAIRS_LOW
#undef PAIRS_HIGH
#undef TRANSPOSE_4X4
#undef BYTE_ONES
