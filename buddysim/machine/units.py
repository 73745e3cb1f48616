"""Quantities with their units, exact to the last digit.

Every quantity in a machine file is a number and a unit: ``"4 MiB"``, ``"900 GB/s"``, ``"1.3 GHz"``, ``"280 ns"``,
``"11 dram_cycles"``, ``"32 B/core_cycle"``. Numbers are fractions, so that no two computers round differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from buddysim.base.hints import hint, shortened

PS_PER_S = 10**12

SIZE_UNITS: dict[str, int] = {
    "B": 1,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
TIME_UNITS: dict[str, int] = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
FREQUENCY_UNITS: dict[str, int] = {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}
FLOPS_UNITS: dict[str, int] = {"FLOPS": 1, "GFLOPS": 10**9, "TFLOPS": 10**12, "PFLOPS": 10**15}
CYCLE_UNITS: dict[str, str] = {"core_cycles": "core", "core_cycle": "core", "dram_cycles": "dram", "dram_cycle": "dram"}

_NUMBER = r"[+-]?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,2})?"
_QUANTITY = re.compile(rf"\s*(?P<number>{_NUMBER})\s*(?P<unit>(?:[^\s\d]\S*)?)\s*")


@dataclass(frozen=True, slots=True)
class Time:
    """A time, in seconds (or ns, us, ...) or in cycles of a clock."""

    amount: Fraction
    unit: str

    @property
    def clock(self) -> str | None:
        """``"core"`` or ``"dram"`` for a time in cycles, None for one in seconds."""
        return CYCLE_UNITS.get(self.unit)

    def picoseconds(self, clocks: Mapping[str, Frequency]) -> Fraction:
        """The time in picoseconds, exactly; a time in cycles needs its clock in ``clocks``."""
        clock = self.clock  # one fraction from integers: a run converts some fifty times
        if clock is None:
            return Fraction(self.amount.numerator * TIME_UNITS[self.unit], self.amount.denominator)
        return Fraction(self.amount.numerator * PS_PER_S, self.amount.denominator * clocks[clock].hz)

    def canonical(self) -> str:
        """Return a text that is equal for equal times: in picoseconds or in cycles."""
        if self.clock is None:
            return f"{self.amount * TIME_UNITS[self.unit]} ps"
        return f"{self.amount} {self.clock}_cycles"

    def __str__(self) -> str:
        return f"{_decimal(self.amount)} {self.unit}"


@dataclass(frozen=True, slots=True)
class Frequency:
    """A clock's frequency: an integer number of hertz."""

    hz: int

    def canonical(self) -> str:
        """Return a text that is equal for equal frequencies."""
        return f"{self.hz} Hz"

    def __str__(self) -> str:
        return _in_largest(self.hz, FREQUENCY_UNITS)


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """A bandwidth, in bytes per second or per cycle of a clock."""

    amount: Fraction
    unit: str

    @property
    def clock(self) -> str | None:
        """``"core"`` or ``"dram"`` for bytes per cycle, None for bytes per second."""
        return CYCLE_UNITS.get(self.unit.partition("/")[2])

    def bytes_per_s(self, clocks: Mapping[str, Frequency]) -> Fraction:
        """Bytes per second, exactly; a bandwidth per cycle needs its clock in ``clocks``."""
        size = SIZE_UNITS[self.unit.partition("/")[0]]
        per_s = 1 if self.clock is None else clocks[self.clock].hz
        return Fraction(self.amount.numerator * size * per_s, self.amount.denominator)

    def canonical(self) -> str:
        """Return a text that is equal for equal bandwidths: in bytes per second or per cycle."""
        size = SIZE_UNITS[self.unit.partition("/")[0]]
        return f"{self.amount * size} B/{'s' if self.clock is None else self.clock + '_cycle'}"

    def __str__(self) -> str:
        return f"{_decimal(self.amount)} {self.unit}"


BANDWIDTH_UNITS: tuple[str, ...] = (*(f"{size}/s" for size in SIZE_UNITS), "B/core_cycle", "B/dram_cycle")


def canonical(figure: object) -> object:
    """A figure as a plain value: a quantity in one unit, however a file wrote it."""
    return figure.canonical() if isinstance(figure, Time | Frequency | Bandwidth) else figure


def plain_number(value: Any, clocks: Mapping[str, Frequency]) -> Any:
    """Return a quantity in ps, bytes per second or Hz; a value of another kind as it is."""
    if isinstance(value, Time):
        return float(value.picoseconds(clocks))
    if isinstance(value, Bandwidth):
        return float(value.bytes_per_s(clocks))
    return value.hz if isinstance(value, Frequency) else value


def parse_size(text: object, least: int = 0) -> int:
    """``"4 MiB"`` as bytes, at least so many."""
    size = _whole(text, "a size", SIZE_UNITS, "4 MiB", "bytes")
    if size < least:
        raise ValueError(f"{text}: expected {'more than nothing' if least == 1 else f'at least {format_size(least)}'}")
    return size


def format_size(size: int) -> str:
    """Bytes as an integer, in the unit in which it is shortest."""
    whole = [(size // factor, unit) for unit, factor in SIZE_UNITS.items() if size % factor == 0 and factor <= size]
    number, unit = min(whole, key=lambda pair: (len(str(pair[0])), pair[0]), default=(size, "B"))
    return f"{number} {unit}"


def parse_time(text: object) -> Time:
    """``"280 ns"`` or ``"82 core_cycles"``."""
    amount, unit = _split(text, "a time", (*TIME_UNITS, "core_cycles", "dram_cycles"), "280 ns", also=CYCLE_UNITS)
    return Time(amount, unit + "s" if unit.endswith("_cycle") else unit)


def parse_frequency(text: object) -> Frequency:
    """``"1.3 GHz"``."""
    return Frequency(_whole(text, "a frequency", FREQUENCY_UNITS, "1.3 GHz", "hertz"))


def parse_flops(text: object) -> int:
    """``"7 TFLOPS"`` as operations per second."""
    return _whole(text, "a rate of operations", FLOPS_UNITS, "7 TFLOPS", "operations per second")


def format_flops(flops: int) -> str:
    """Operations per second in the largest unit."""
    return _in_largest(flops, FLOPS_UNITS)


def parse_bandwidth(text: object) -> Bandwidth:
    """``"150 GB/s"`` or ``"32 B/core_cycle"``."""
    amount, unit = _split(text, "a bandwidth", BANDWIDTH_UNITS, "150 GB/s")
    return Bandwidth(amount, unit)


def _whole(text: object, what: str, units: Mapping[str, int], example: str, counted: str) -> int:
    amount, unit = _split(text, what, units, example)
    number = amount * units[unit]
    if number.denominator != 1:
        raise ValueError(f"{text!r} is not an integer number of {counted}")
    return int(number)


def _split(
    text: object, what: str, units: Iterable[str], example: str, also: Iterable[str] = ()
) -> tuple[Fraction, str]:
    known = list(units)
    expected = f"expected a number and one of {', '.join(known)}, for example {example!r}"
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is not {what}: {expected}")
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{shortened(text)} is not {what}: {expected}")
    unit = match["unit"]
    if unit not in known and unit not in also:
        problem = f"{shortened(unit)} is not the unit of {what}" if unit else "the unit is missing"
        raise ValueError(f"{shortened(text)} is not {what}: {problem}; {expected}{hint(unit, known) if unit else ''}")
    amount = Fraction(match["number"])
    if amount < 0:
        raise ValueError(f"{text!r} is negative")
    return amount, unit


def _decimal(number: Fraction) -> str:
    if number.denominator == 1:
        return str(number.numerator)
    scaled, digits = number, 0
    while scaled.denominator != 1 and digits < 30:
        scaled, digits = scaled * 10, digits + 1
    text = str(int(scaled)).rjust(digits + 1, "0")
    return f"{text[:-digits]}.{text[-digits:]}"


def _in_largest(number: int, units: Mapping[str, int]) -> str:
    fitting = [(factor, unit) for unit, factor in units.items() if factor <= number]
    factor, unit = max(fitting, default=(1, next(iter(units))))
    return f"{_decimal(Fraction(number, factor))} {unit}"
