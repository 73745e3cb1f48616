"""Reading tokens and numbers from a line of text, in C."""
from libc.stdint cimport int64_t, uint64_t

cdef struct Cursor:
    const unsigned char* at
    const unsigned char* end


cdef inline bint next_token(Cursor* cursor, Cursor* token) noexcept nogil:
    """Read the next token, a run of characters that aren't blank; False at the end of the line."""
    cdef const unsigned char* at = cursor.at
    while at < cursor.end and (at[0] == 32 or at[0] == 9 or at[0] == 13):
        at += 1
    token.at = at
    while at < cursor.end and at[0] != 32 and at[0] != 9 and at[0] != 13:
        at += 1
    token.end = at
    cursor.at = at
    return token.end > token.at


cdef inline bint parse_decimal(Cursor token, int64_t* value) noexcept nogil:
    """Parse a whole token as a decimal number of at most 18 digits, possibly negative."""
    cdef bint negative = token.at < token.end and token.at[0] == 45
    cdef int64_t total = 0
    if negative:
        token.at += 1
    if token.at >= token.end or token.end - token.at > 18:
        return False
    while token.at < token.end:
        if token.at[0] < 48 or token.at[0] > 57:
            return False
        total = total * 10 + (token.at[0] - 48)
        token.at += 1
    value[0] = -total if negative else total
    return True


cdef inline bint parse_hex(Cursor token, uint64_t* value) noexcept nogil:
    """Parse a whole token as a hexadecimal number of at most 16 digits, with or without 0x."""
    cdef uint64_t total = 0
    cdef unsigned char digit
    if token.end - token.at > 2 and token.at[0] == 48 and (token.at[1] | 32) == 120:
        token.at += 2
    if token.at >= token.end or token.end - token.at > 16:
        return False
    while token.at < token.end:
        digit = token.at[0]
        if 48 <= digit <= 57:
            digit -= 48
        elif 97 <= (digit | 32) <= 102:
            digit = (digit | 32) - 87
        else:
            return False
        total = total << 4 | digit
        token.at += 1
    value[0] = total
    return True


cdef inline bint token_is(Cursor token, const char* word) noexcept nogil:
    """Whether the token is exactly the word."""
    while token.at < token.end and word[0] != 0:
        if token.at[0] != <unsigned char>word[0]:
            return False
        token.at += 1
        word += 1
    return token.at == token.end and word[0] == 0
