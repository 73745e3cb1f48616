"""Delayed precision reduction: values known by hand, the kernels, the reference model, and numpy's halves."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.gist import dpr
from buddysim.gist.formats import FORMATS, find_format
from tests.gist.singles import EDGES, arrays
from tests.reference.gist import ref_dpr

names = st.sampled_from(list(FORMATS))


def bits(values: NDArray[np.float32]) -> list[int]:
    return values.reshape(-1).view(np.uint32).tolist()


def one(value: float, name: str) -> float:
    return float(dpr.rounded(np.array([value], np.float32), name)[0])


def same(value: float, reference: float) -> bool:
    """Return whether values are equal, including the signs of zeros and NaNs."""
    if math.isnan(reference):
        return math.isnan(value) and math.copysign(1, value) == math.copysign(1, reference)
    return value == reference and math.copysign(1, value) == math.copysign(1, reference)


@pytest.mark.parametrize(("name", "largest", "min_normal"), [
    ("fp16", 65504.0, 2.0**-14), ("fp10", 63488.0, 2.0**-14), ("fp8", 240.0, 2.0**-6),
])  # fmt: skip
def test_values_beyond_the_bounds_saturate_or_become_zero(name: str, largest: float, min_normal: float) -> None:
    assert (find_format(name).largest, find_format(name).min_normal) == (largest, min_normal)
    for sign in (1, -1):
        for beyond in (largest, 2 * largest, 3e38, math.inf):
            assert one(sign * beyond, name) == sign * largest
        assert one(sign * min_normal, name) == sign * min_normal
        for below in (min_normal / 2, min_normal * 0.9, 1e-40, 0.0):
            assert same(one(sign * below, name), math.copysign(0.0, sign))
        nan = one(math.copysign(math.nan, sign), name)
        assert math.isnan(nan)
        assert math.copysign(1, nan) == sign


def test_ties_round_to_even_and_rounding_precedes_the_flush_to_zero() -> None:
    assert [one(1 + step / 16, "fp8") for step in range(5)] == [1, 1, 1.125, 1.25, 1.25]
    assert one(1 + 2.0**-11, "fp16") == 1
    assert one(1 + 3 * 2.0**-11, "fp16") == 1 + 2.0**-9
    assert one(1 + 2.0**-5 + 2.0**-20, "fp10") == 1 + 2.0**-4
    # 2^-6 less a half of a step of the binade below it: a tie, to the even 2^-6. A step below that it is less.
    assert one(2.0**-6 - 2.0**-11, "fp8") == 2.0**-6
    assert one(2.0**-6 - 2.0**-11 - 2.0**-29, "fp8") == 0


def test_fields_are_packed_as_in_the_paper() -> None:
    values = np.array([1, -2, 0.5, 240], np.float32)
    assert dpr.encode(values, "fp8").tolist() == [7 << 3, 1 << 7 | 8 << 3, 6 << 3, 14 << 3 | 7]
    assert dpr.encode(values, "fp16").tobytes() == values.astype("<f2").tobytes()
    first, second, third = 15 << 4, 1 << 9 | 16 << 4, 14 << 4
    rest = 22 << 4 | 14
    assert dpr.encode(values, "fp10").tobytes() == struct.pack("<2I", first | second << 10 | third << 20, rest)
    assert [len(dpr.encode(values, name)) for name in FORMATS] == [8, 8, 4]
    assert dpr.encode(np.array([np.nan, -np.nan], np.float32), "fp8").tolist() == [0x7C, 0xFC]


@given(arrays(), names)
@settings(max_examples=300)
def test_kernels_agree_with_the_reference_model_both_ways(values: NDArray[np.float32], name: str) -> None:
    payload = dpr.encode(values, name)
    assert payload.tobytes() == ref_dpr.encode(values.tolist(), name)
    assert len(payload) == find_format(name).payload_bytes(len(values))
    back = dpr.decode(payload, name, len(values))
    for value, reference in zip(back.tolist(), ref_dpr.decode(payload.tobytes(), name, len(values)), strict=True):
        assert same(value, reference)
    assert bits(dpr.rounded(values, name)) == bits(back)
    assert dpr.encode(back, name).tobytes() == payload.tobytes()  # nothing is lost a second time


@pytest.mark.parametrize("name", list(FORMATS))
def test_every_edge_value_agrees_with_the_reference_model(name: str) -> None:
    values = np.array([*EDGES, *(edge | 1 << 31 for edge in EDGES)], np.uint32).view(np.float32)
    assert dpr.encode(values, name).tobytes() == ref_dpr.encode(values.tolist(), name)


def test_fp16_is_numpys_half_without_subnormals_and_infinities() -> None:
    """Values are all finite normal halves and their neighbours."""
    half = np.arange(2**16, dtype=np.uint16).view(np.float16)
    exact = half.astype(np.float32)
    exact = exact[np.isfinite(exact)]
    values = np.concatenate([exact, np.nextafter(exact, np.float32(0)), np.nextafter(exact, np.float32(np.inf))])
    values = values[((np.abs(values) >= 2.0**-14) | (values == 0)) & (np.abs(values) < 65520)]
    assert bits(dpr.rounded(values, "fp16")) == bits(values.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize("name", ["fp10", "fp8"])
def test_every_field_survives_decoding_and_encoding(name: str) -> None:
    """Fields that `encode` returns have exponent zero only for zeros, and one NaN of each sign."""
    one, top = find_format(name), (1 << find_format(name).exponent_bits) - 1
    fields = [
        field
        for field in range(1 << (1 + one.exponent_bits + one.mantissa_bits))
        for exponent, mantissa in [(field >> one.mantissa_bits & top, field & ((1 << one.mantissa_bits) - 1))]
        if (exponent or not mantissa) and (exponent < top or mantissa == 1 << (one.mantissa_bits - 1))
    ]
    packed = [sum(c << 10 * n for n, c in enumerate(fields[i : i + 3])) for i in range(0, len(fields), 3)]
    payload = np.array(packed, "<u4").view(np.uint8) if name == "fp10" else np.array(fields, np.uint8)
    assert dpr.encode(dpr.decode(payload, name, len(fields)), name).tobytes() == payload.tobytes()


def test_bad_input_is_one_line() -> None:
    values = np.ones(4, np.float32)
    with pytest.raises(BuddysimError, match=r"format 'fp9': unknown: expected one of fp16, fp10, fp8 \(nearest: fp8\)"):
        dpr.encode(values, "fp9")
    with pytest.raises(BuddysimError, match="values float64: expected contiguous float32"):
        dpr.encode(values.astype(float), "fp8")
    with pytest.raises(BuddysimError, match="values float32: expected contiguous"):
        dpr.encode(np.ones((4, 4), np.float32)[:, 1], "fp8")
    with pytest.raises(BuddysimError, match="fp10: payload of 7 bytes: expected 8 for 4 values"):
        dpr.decode(bytes(7), "fp10", 4)
    assert dpr.decode(dpr.encode(values[:0], "fp10"), "fp10", 0).shape == (0,)
