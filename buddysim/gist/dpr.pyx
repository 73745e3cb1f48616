"""Delayed precision reduction: single-precision values in 16, 10 or 8 bits, both ways (Gist, Section IV-A).

A value is rounded to the format's mantissa, ties to even, as if exponents had no bounds. What is then below the least
normal value becomes zero with its sign; what is above the largest one, infinities too, becomes the largest one with its
sign. NaN stays NaN, with its sign. `ref_dpr` is the readable twin.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.gist.formats import find_format

TWIN = "tests.reference.gist.ref_dpr"

cdef enum:
    SINGLE_MANTISSA = 23
    SINGLE_BIAS = 127
    INFINITE = 0x7F800000

cdef struct Shape:
    uint32_t sign               # position of the sign bit
    uint32_t shift              # bits of the mantissa that are dropped
    uint32_t rebias             # what the biases differ by, where the exponent lies
    uint32_t least              # the least normal value, before rebias
    uint32_t largest            # the largest finite value, after rebias
    uint32_t nan


cdef Shape shape_of(format):
    cdef Shape shape
    cdef uint32_t mantissa = format.mantissa_bits, exponent = format.exponent_bits, bias = format.bias
    shape.sign = exponent + mantissa
    shape.shift = SINGLE_MANTISSA - mantissa
    shape.rebias = (SINGLE_BIAS - bias) << mantissa
    shape.least = (SINGLE_BIAS - bias + 1) << mantissa
    shape.largest = (1u << (exponent + mantissa)) - (1u << mantissa) - 1
    shape.nan = ((1u << exponent) - 1) << mantissa | 1u << (mantissa - 1)
    return shape


cdef inline uint32_t reduced(uint32_t bits, const Shape* s) noexcept nogil:
    """The code of a value."""
    cdef uint32_t size = bits & 0x7FFFFFFF
    cdef uint32_t rounded = (size + (1u << (s.shift - 1)) - 1 + (size >> s.shift & 1)) >> s.shift
    cdef uint32_t code = rounded - s.rebias
    code = s.largest if code > s.largest else code
    code = 0 if rounded < s.least else code
    code = s.nan if size > INFINITE else code
    return code | bits >> 31 << s.sign


cdef inline uint32_t restored(uint32_t code, const Shape* s) noexcept nogil:
    """The bits of the value that has this code."""
    cdef uint32_t size = code & ((1u << s.sign) - 1)
    cdef uint32_t bits = (size + s.rebias) << s.shift
    bits = 0x7FC00000 if size > s.largest else bits
    bits = 0 if size < s.least - s.rebias else bits
    return bits | (code >> s.sign & 1) << 31


def encode(values not None, str name not None):
    """The code of an array of float32.

    Parameters
    ----------
    values : C-contiguous array of float32 of any shape
    name : ``"fp16"``, ``"fp10"`` or ``"fp8"``

    Returns
    -------
    uint8 array: two, three or four values in 4 bytes, little-endian; of three the first lies in bits 0 to 9, and the
    last 4 bytes are padded with zeros
    """
    format = find_format(name)
    cdef const uint32_t[::1] bits = _bits(values)
    cdef Shape shape = shape_of(format)
    cdef int64_t i, count = bits.shape[0], whole = count // 3
    cdef uint32_t word
    code = np.empty(format.payload_bytes(count), np.uint8)
    cdef uint8_t[::1] bytes_out
    cdef uint16_t[::1] halves
    cdef uint32_t[::1] words
    if format.per_word == 4:
        bytes_out = code
        with nogil:
            for i in range(count):
                bytes_out[i] = <uint8_t>reduced(bits[i], &shape)
    elif format.per_word == 2:
        halves = code.view(np.uint16)
        with nogil:
            for i in range(count):
                halves[i] = <uint16_t>reduced(bits[i], &shape)
    else:
        words = code.view(np.uint32)
        with nogil:
            for i in range(whole):
                words[i] = (
                    reduced(bits[3 * i], &shape)
                    | reduced(bits[3 * i + 1], &shape) << 10
                    | reduced(bits[3 * i + 2], &shape) << 20
                )
            if whole * 3 < count:
                word = reduced(bits[3 * whole], &shape)
                if whole * 3 + 1 < count:
                    word |= reduced(bits[3 * whole + 1], &shape) << 10
                words[whole] = word
    return code


def decode(const uint8_t[::1] code not None, str name not None, int64_t count):
    """The values of a code, as a flat array of float32.

    Parameters
    ----------
    code : what `encode` gave
    name : of the format
    count : of the values
    """
    format = find_format(name)
    if count < 0 or code.shape[0] != format.payload_bytes(count):
        raise BuddysimError(
            f"{name}: code of {code.shape[0]} bytes: expected {format.payload_bytes(max(count, 0))} for {count} values"
        )
    cdef Shape shape = shape_of(format)
    cdef int64_t i, whole = count // 3
    values = np.empty(count, np.float32)
    cdef uint32_t[::1] bits = values.view(np.uint32)
    cdef const uint16_t[::1] halves
    cdef const uint32_t[::1] words
    cdef uint32_t word
    raw = np.asarray(code)
    if format.per_word == 4:
        with nogil:
            for i in range(count):
                bits[i] = restored(code[i], &shape)
    elif format.per_word == 2:
        halves = raw.view(np.uint16)
        with nogil:
            for i in range(count):
                bits[i] = restored(halves[i], &shape)
    else:
        words = raw.view(np.uint32)
        with nogil:
            for i in range(whole):
                word = words[i]
                bits[3 * i] = restored(word & 1023, &shape)
                bits[3 * i + 1] = restored(word >> 10 & 1023, &shape)
                bits[3 * i + 2] = restored(word >> 20 & 1023, &shape)
            for i in range(3 * whole, count):
                bits[i] = restored(words[whole] >> 10 * <uint32_t>(i - 3 * whole) & 1023, &shape)
    return values


def rounded(values not None, str name not None):
    """What `decode` gives of the code of `encode`: an array of the same shape."""
    cdef Shape shape = shape_of(find_format(name))
    cdef const uint32_t[::1] bits = _bits(values)
    cdef int64_t i
    found = np.empty(values.shape, np.float32)
    cdef uint32_t[::1] out = found.reshape(-1).view(np.uint32)
    with nogil:
        for i in range(bits.shape[0]):
            out[i] = restored(reduced(bits[i], &shape), &shape)
    return found


def _bits(values):
    """The bits of an array of float32."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float32 or not values.flags.c_contiguous:
        raise BuddysimError(f"values {getattr(values, 'dtype', type(values).__name__)}: expected contiguous float32")
    return values.reshape(-1).view(np.uint32)
