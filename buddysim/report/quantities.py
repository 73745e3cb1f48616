"""Numbers with units, as reports print them: memory in powers of 1024, rates of links in powers of 1000."""

from __future__ import annotations

_TIME_UNITS = ((10**12, "s"), (10**9, "ms"), (10**6, "us"), (10**3, "ns"), (1, "ps"))
_BYTE_UNITS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_COUNT_UNITS = ((10**9, "G"), (10**6, "M"), (10**3, "k"), (1, ""))


def format_time(ps: float) -> str:
    """A time in picoseconds, for example ``143.6 us``."""
    return _in_unit(ps, _TIME_UNITS)


def format_bytes(count: float) -> str:
    """Bytes in powers of 1024, for example ``36.2 MiB``."""
    return _in_unit(count, _BYTE_UNITS)


def format_gib(count: float) -> str:
    """Bytes in powers of 1024, as a number of GiB with two digits, for example ``12.00``."""
    return f"{count / 2**30:,.2f}"


def format_rate(per_s: float) -> str:
    """Things per second, for example ``3.3 M/s``."""
    return f"{_in_unit(per_s, _COUNT_UNITS).strip()}/s"


def format_percent(part: float, whole: float = 1) -> str:
    """A share in per cent with three significant digits; ``-`` where there is nothing to take a share of."""
    if not whole:
        return "-"
    percent = 100 * part / whole
    digits = 1 if percent >= 10 else 2 if percent >= 1 else 3
    return f"{percent:.{digits}f} %" if percent else "0 %"


def change_text(ratio: float) -> str:
    """A time over the baseline's in words: ``2.049x faster``, ``1.013x slower``."""
    if f"{ratio:.3f}" == "1.000":
        return "as fast"
    if not ratio:
        return "in no time"
    return f"{1 / ratio:.3f}x faster" if ratio < 1 else f"{ratio:.3f}x slower"


def band_text(ratio: float, low: float, high: float) -> str:
    """The band of `change_text`: ``2.010x to 2.081x``; where it contains 1, of the baseline's time."""
    if low <= 1 <= high:
        return f"{low:.3f} to {high:.3f} of its time"
    ends = sorted((1 / low, 1 / high) if 0 < low <= ratio < 1 else (low, high))
    return f"{ends[0]:.3f}x to {ends[1]:.3f}x"


def _in_unit(amount: float, units: tuple[tuple[int, str], ...]) -> str:
    for factor, unit in units:
        if amount >= factor:
            scaled = amount / factor
            digits = 0 if factor == 1 or scaled >= 1000 else 1
            return f"{scaled:,.{digits}f} {unit}"
    return f"{amount:g} {units[-1][1]}"
