"""Reference model of `dpr`: the same payloads by exact arithmetic, value by value."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from fractions import Fraction

from buddysim.gist.formats import DprFormat, find_format


def encode(values: Iterable[float], name: str) -> bytes:
    """Payload of single-precision numbers."""
    format = find_format(name)
    fields = [_field(value, format) for value in values]
    if format.per_word != 3:
        return b"".join(field.to_bytes(4 // format.per_word, "little") for field in fields)
    words = [fields[at : at + 3] for at in range(0, len(fields), 3)]
    return b"".join(sum(field << 10 * n for n, field in enumerate(word)).to_bytes(4, "little") for word in words)


def decode(payload: bytes, name: str, count: int) -> list[float]:
    """Numbers of a payload."""
    format = find_format(name)
    if format.per_word == 3:
        words = struct.unpack(f"<{len(payload) // 4}I", payload)
        fields = [word >> 10 * n & 1023 for word in words for n in range(3)][:count]
    else:
        size = 4 // format.per_word
        fields = [int.from_bytes(payload[at : at + size], "little") for at in range(0, len(payload), size)]
    return [_value(field, format) for field in fields]


def _field(value: float, format: DprFormat) -> int:
    mantissa_bits, top = format.mantissa_bits, (1 << format.exponent_bits) - 1
    sign = int(math.copysign(1, value) < 0) << (format.exponent_bits + mantissa_bits)
    if math.isnan(value):
        return sign | top << mantissa_bits | 1 << (mantissa_bits - 1)
    if math.isinf(value):
        return sign | (top << mantissa_bits) - 1
    fraction, exponent = math.frexp(abs(value))  # 0.5 <= fraction < 1
    steps = round(Fraction(fraction) * 2 ** (mantissa_bits + 1))  # to even
    size = steps * Fraction(2) ** (exponent - mantissa_bits - 1)
    if size < Fraction(format.min_normal):
        return sign
    if size > Fraction(format.largest):
        return sign | (top << mantissa_bits) - 1
    _, exponent = math.frexp(float(size))
    mantissa = size / Fraction(2) ** (exponent - 1) - 1
    return sign | (exponent - 1 + format.bias) << mantissa_bits | int(mantissa * 2**mantissa_bits)


def _value(field: int, format: DprFormat) -> float:
    mantissa_bits, top = format.mantissa_bits, (1 << format.exponent_bits) - 1
    sign = -1.0 if field >> (format.exponent_bits + mantissa_bits) & 1 else 1.0
    exponent, mantissa = field >> mantissa_bits & top, field & ((1 << mantissa_bits) - 1)
    if exponent == top:
        return math.copysign(math.nan, sign)
    if exponent == 0:
        return math.copysign(0.0, sign)
    return sign * math.ldexp(1 + mantissa / 2**mantissa_bits, exponent - format.bias)
