"""Delayed precision reduction: single-precision values in 16, 10 or 8 bits, both ways (Gist, Section IV-A).

A value is rounded to the format's mantissa, ties to even, as if exponents had no bounds. A rounded value below the
smallest normal value becomes zero with its sign. A value above the largest finite value, or an infinity, becomes the
largest finite value with its sign. NaN stays NaN, with its sign. Reference model: `ref_dpr`.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.gist.formats import find_format

REFERENCE = "tests.reference.gist.ref_dpr"

cdef enum:
    SINGLE_MANTISSA = 23
    SINGLE_BIAS = 127
    INFINITE = 0x7F800000

cdef struct FloatFormat:
    uint32_t sign               # position of the sign bit
    uint32_t shift              # dropped bits of the mantissa
    uint32_t rebias             # difference of the biases, at the exponent
    uint32_t min_normal              # smallest normal value, before rebias
    uint32_t largest            # the largest finite value, after rebias
    uint32_t nan


cdef FloatFormat float_format_of(format):
    cdef FloatFormat shape
    cdef uint32_t mantissa = format.mantissa_bits, exponent = format.exponent_bits, bias = format.bias
    shape.sign = exponent + mantissa
    shape.shift = SINGLE_MANTISSA - mantissa
    shape.rebias = (SINGLE_BIAS - bias) << mantissa
    shape.min_normal = (SINGLE_BIAS - bias + 1) << mantissa
    shape.largest = (1u << (exponent + mantissa)) - (1u << mantissa) - 1
    shape.nan = ((1u << exponent) - 1) << mantissa | 1u << (mantissa - 1)
    return shape


cdef inline uint32_t reduced(uint32_t bits, const FloatFormat* s) noexcept nogil:
    """Return the format's field for a value's bits."""
    cdef uint32_t size = bits & 0x7FFFFFFF
    cdef uint32_t rounded = (size + (1u << (s.shift - 1)) - 1 + (size >> s.shift & 1)) >> s.shift
    cdef uint32_t field = rounded - s.rebias
    field = s.largest if field > s.largest else field
    field = 0 if rounded < s.min_normal else field
    field = s.nan if size > INFINITE else field
    return field | bits >> 31 << s.sign


cdef inline uint32_t restored(uint32_t field, const FloatFormat* s) noexcept nogil:
    """Return the bits of the single-precision value of a field."""
    cdef uint32_t size = field & ((1u << s.sign) - 1)
    cdef uint32_t bits = (size + s.rebias) << s.shift
    bits = 0x7FC00000 if size > s.largest else bits
    bits = 0 if size < s.min_normal - s.rebias else bits
    return bits | (field >> s.sign & 1) << 31


def encode(values not None, str name not None):
    """Encode an array of float32 in a format.

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
    cdef FloatFormat shape = float_format_of(format)
    cdef int64_t i, count = bits.shape[0], full_words = count // 3
    cdef uint32_t word
    payload = np.empty(format.payload_bytes(count), np.uint8)
    cdef uint8_t[::1] bytes_out
    cdef uint16_t[::1] halves
    cdef uint32_t[::1] words
    if format.per_word == 4:
        bytes_out = payload
        with nogil:
            for i in range(count):
                bytes_out[i] = <uint8_t>reduced(bits[i], &shape)
    elif format.per_word == 2:
        halves = payload.view(np.uint16)
        with nogil:
            for i in range(count):
                halves[i] = <uint16_t>reduced(bits[i], &shape)
    else:
        words = payload.view(np.uint32)
        with nogil:
            for i in range(full_words):
                words[i] = (
                    reduced(bits[3 * i], &shape)
                    | reduced(bits[3 * i + 1], &shape) << 10
                    | reduced(bits[3 * i + 2], &shape) << 20
                )
            if full_words * 3 < count:
                word = reduced(bits[3 * full_words], &shape)
                if full_words * 3 + 1 < count:
                    word |= reduced(bits[3 * full_words + 1], &shape) << 10
                words[full_words] = word
    return payload


def decode(const uint8_t[::1] payload not None, str name not None, int64_t count):
    """Decode a payload into a flat array of float32.

    Parameters
    ----------
    payload : result of `encode`
    name : of the format
    count : of the values
    """
    format = find_format(name)
    if count < 0 or payload.shape[0] != format.payload_bytes(count):
        raise BuddysimError(
            f"{name}: payload of {payload.shape[0]} bytes: expected {format.payload_bytes(max(count, 0))} for {count} values"
        )
    cdef FloatFormat shape = float_format_of(format)
    cdef int64_t i, full_words = count // 3
    values = np.empty(count, np.float32)
    cdef uint32_t[::1] bits = values.view(np.uint32)
    cdef const uint16_t[::1] halves
    cdef const uint32_t[::1] words
    cdef uint32_t word
    raw = np.asarray(payload)
    if format.per_word == 4:
        with nogil:
            for i in range(count):
                bits[i] = restored(payload[i], &shape)
    elif format.per_word == 2:
        halves = raw.view(np.uint16)
        with nogil:
            for i in range(count):
                bits[i] = restored(halves[i], &shape)
    else:
        words = raw.view(np.uint32)
        with nogil:
            for i in range(full_words):
                word = words[i]
                bits[3 * i] = restored(word & 1023, &shape)
                bits[3 * i + 1] = restored(word >> 10 & 1023, &shape)
                bits[3 * i + 2] = restored(word >> 20 & 1023, &shape)
            for i in range(3 * full_words, count):
                bits[i] = restored(words[full_words] >> 10 * <uint32_t>(i - 3 * full_words) & 1023, &shape)
    return values


def rounded(values not None, str name not None):
    """Round values to a format: `encode` and `decode`; an array of the same shape."""
    cdef FloatFormat shape = float_format_of(find_format(name))
    cdef const uint32_t[::1] bits = _bits(values)
    cdef int64_t i
    result = np.empty(values.shape, np.float32)
    cdef uint32_t[::1] out = result.reshape(-1).view(np.uint32)
    with nogil:
        for i in range(bits.shape[0]):
            out[i] = restored(reduced(bits[i], &shape), &shape)
    return result


def _bits(values):
    """Return the bits of an array of float32."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float32 or not values.flags.c_contiguous:
        raise BuddysimError(f"values {getattr(values, 'dtype', type(values).__name__)}: expected contiguous float32")
    return values.reshape(-1).view(np.uint32)
