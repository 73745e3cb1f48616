"""Numbers with units as screens show them: bytes in powers of 1024, rates in powers of 1000."""

from __future__ import annotations

from math import floor, isfinite, log10

_TIME_UNITS = ((10**12, "s"), (10**9, "ms"), (10**6, "us"), (10**3, "ns"), (1, "ps"))
_BYTE_UNITS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_COUNT_UNITS = ((10**9, "G"), (10**6, "M"), (10**3, "k"), (1, ""))
_DIGITS = 3
#: Integers of up to so many digits are shown in full.
_WHOLE_DIGITS = 7


def format_significant(value: float, digits: int = _DIGITS) -> str:
    """Return a number with three significant digits, for example ``1.33``, ``41.3`` or ``4,098``; ``inf`` as it is."""
    if not value:
        return "0"
    if not isfinite(value):  # a file's 1e300 ms are more picoseconds than a number holds
        return f"{value:g}"
    decimals = max(0, digits - 1 - floor(log10(abs(value))))
    rounded = round(value, decimals)
    decimals = max(0, digits - 1 - floor(log10(abs(rounded)))) if rounded else decimals
    return f"{rounded:,.{decimals}f}"


def format_count(count: float) -> str:
    """Return an integer in full up to seven digits, for example ``211,111``; above, ``14.0 M``."""
    return f"{count:,.0f}" if abs(count) < 10**_WHOLE_DIGITS else format_scaled(count)


def format_scaled(count: float) -> str:
    """Return a number with a prefix in powers of 1000, for example ``1.83 M``; a whole one below 1000 as it is."""
    if count < 1000 and count == int(count):
        return f"{count:.0f}"
    return _in_unit(count, _COUNT_UNITS).strip()


def format_time(ps: float) -> str:
    """Return a time given in picoseconds, for example ``162 us``."""
    return _in_unit(ps, _TIME_UNITS)


def format_time_range(min_ps: float, max_ps: float) -> str:
    """Return a range of times in the unit of the larger one, for example ``40.5 - 42.3 us``."""
    factor, unit = next((pair for pair in _TIME_UNITS if max_ps >= pair[0]), _TIME_UNITS[-1])
    return f"{format_significant(min_ps / factor)} - {format_significant(max_ps / factor)} {unit}"


def format_bytes(count: float) -> str:
    """Return bytes in powers of 1024, for example ``36.2 MiB``."""
    factor, unit = byte_unit(count)
    return f"{count:g} {unit}" if factor == 1 else f"{format_in_bytes(count, factor)} {unit}"


def byte_unit(count: float) -> tuple[int, str]:
    """Return the unit in which a number of bytes is at least 1: its factor and name."""
    return next((pair for pair in _BYTE_UNITS if count >= pair[0]), _BYTE_UNITS[-1])


def format_in_bytes(count: float, factor: int) -> str:
    """Return bytes as a number of units of `factor` bytes with one decimal; ``< 0.1`` for less that is not 0."""
    if factor == 1 or not count:
        return f"{count:,.0f}"
    number = f"{count / factor:,.1f}"
    return "< 0.1" if number == "0.0" and count else number


def format_gib(count: float) -> str:
    """Return bytes as a number of GiB with two decimals, for example ``12.00``."""
    return f"{count / 2**30:,.2f}"


def format_rate(per_s: float) -> str:
    """Return things per second, for example ``3.33 M/s``."""
    return f"{format_scaled(per_s)}/s"


def format_percent(part: float, total: float = 1) -> str:
    """Return a fraction in per cent with one decimal; ``-`` if `total` is 0."""
    if not total:
        return "-"
    number = format_percent_number(part, total)
    return f"{number} %"


def format_percent_number(part: float, total: float = 1) -> str:
    """Return a fraction in per cent without the sign; ``0`` and ``100`` are exact."""
    percent = 100 * part / total
    if not percent or percent == 100:
        return f"{percent:.0f}"
    return "< 0.1" if 0 < percent < 0.05 else f"{percent:.1f}"


def format_whole_percent(part: float, total: float = 1) -> str:
    """Return a fraction in whole per cent, for example ``86 %``; ``-`` if `total` is 0."""
    if not total:
        return "-"
    percent = 100 * part / total
    return "< 1 %" if 0 < percent < 0.5 else f"{percent:.0f} %"


def format_speedup(ratio: float) -> str:
    """Return a speedup, for example ``1.33x``; below 1 it is a slowdown."""
    return f"{format_significant(ratio)}x"


def format_speedup_range(low: float, high: float) -> str:
    """Return a range of speedups, for example ``1.32x - 1.35x``."""
    return f"{format_speedup(low)} - {format_speedup(high)}"


def _in_unit(amount: float, units: tuple[tuple[int, str], ...]) -> str:
    for factor, unit in units:
        if amount >= factor:
            return f"{format_significant(amount / factor)} {unit}"
    return f"{amount:g} {units[-1][1]}"
