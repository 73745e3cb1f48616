"""Quantities: accepted texts with exact values; refused texts."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.machine import units
from buddysim.machine.units import Bandwidth, Frequency, Time

CLOCKS = {"core": Frequency(1_300_000_000), "dram": Frequency(875_000_000)}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4 MiB", 4 << 20),
        ("6MiB", 6 << 20),
        ("0 B", 0),
        (" 1.5 KiB ", 1536),
        ("141 GB", 141 * 10**9),
        ("1e3 B", 1000),
        ("0.5 GiB", 1 << 29),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert units.parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "picoseconds"),
    [
        ("280 ns", Fraction(280_000)),
        ("30us", Fraction(30_000_000)),
        ("1 core_cycle", Fraction(10_000, 13)),
        ("82 core_cycles", Fraction(820_000, 13)),
        ("11 dram_cycles", Fraction(88_000, 7)),
        ("0.1 ps", Fraction(1, 10)),
    ],
)
def test_times_are_exact(text: str, picoseconds: Fraction) -> None:
    assert units.parse_time(text).picoseconds(CLOCKS) == picoseconds


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        ("900 GB/s", 900 * 10**9),
        ("4.8 TB/s", 4_800 * 10**9),
        ("1 GiB/s", 1 << 30),
        ("32 B/core_cycle", 32 * 1_300_000_000),
        ("16 B/dram_cycle", 14 * 10**9),
    ],
)
def test_bandwidths(text: str, bytes_per_s: int) -> None:
    assert units.parse_bandwidth(text).bytes_per_s(CLOCKS) == bytes_per_s


def test_frequencies() -> None:
    assert units.parse_frequency("1.3 GHz").hz == 1_300_000_000
    assert str(units.parse_frequency("877.5 MHz")) == "877.5 MHz"


@pytest.mark.parametrize(
    ("parse", "text", "problem"),
    [
        (units.parse_size, "4 GHz", "'GHz' is not the unit of a size"),
        (units.parse_size, "4 mib", "(nearest: MiB)"),
        (units.parse_size, "4", "the unit is missing"),
        (units.parse_size, "", "is not a size"),
        (units.parse_size, "-4 MiB", "is negative"),
        (units.parse_size, "0.3 B", "not an integer number of bytes"),
        (units.parse_size, "4 MiB MiB", "is not a size"),
        (units.parse_size, "nan B", "is not a size"),
        (units.parse_size, 4, "4 is not a size: expected a number and one of B, KiB"),
        (units.parse_time, "11 dram_cycels", "(nearest: dram_cycles)"),
        (units.parse_time, "11 cycles", "is not the unit of a time"),
        (units.parse_time, "5 µs", "is not the unit of a time"),
        (units.parse_bandwidth, "150 GB", "(nearest: GB/s)"),
        (units.parse_bandwidth, "150 Gb/s", "(nearest: GB/s)"),
        (units.parse_frequency, "1.3", "the unit is missing"),
        (units.parse_frequency, "0.0001 Hz", "not an integer number of hertz"),
    ],
)
def test_wrong_quantities_say_what_is_expected(parse: object, text: object, problem: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse(text)  # type: ignore[operator]
    assert problem in str(refused.value)


@given(st.text(max_size=50))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (units.parse_size, units.parse_time, units.parse_bandwidth, units.parse_frequency):
        try:
            parse(text)
        except ValueError as error:
            assert len(str(error)) < 400


def test_huge_numbers_are_refused_at_once() -> None:
    for text in ("1e999999999 B", "9" * 100_000 + " B", "1." + "1" * 100_000 + " ns"):
        with pytest.raises(ValueError, match="is not a"):
            units.parse_size(text)


@given(st.integers(0, 2**60))
def test_sizes_survive_being_written(size: int) -> None:
    assert units.parse_size(units.format_size(size)) == size


@given(st.decimals(0, 10**9, places=6), st.sampled_from(["ps", "ns", "us", "core_cycles", "dram_cycles"]))
def test_times_survive_being_written(amount: object, unit: str) -> None:
    time = Time(Fraction(str(amount)), unit)
    assert units.parse_time(str(time)) == time


@given(st.decimals(0, 10**9, places=6), st.sampled_from(["GB/s", "MiB/s", "B/core_cycle", "B/dram_cycle"]))
def test_bandwidths_survive_being_written(amount: object, unit: str) -> None:
    bandwidth = Bandwidth(Fraction(str(amount)), unit)
    assert units.parse_bandwidth(str(bandwidth)) == bandwidth


@given(st.integers(1, 10**11))
def test_frequencies_survive_being_written(hz: int) -> None:
    assert units.parse_frequency(str(Frequency(hz))) == Frequency(hz)
