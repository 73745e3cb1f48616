"""Numbers with units, as reports print them."""

from __future__ import annotations

_TIME_UNITS = ((10**12, "s"), (10**9, "ms"), (10**6, "us"), (10**3, "ns"), (1, "ps"))
_BYTE_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))
_COUNT_UNITS = ((10**9, "G"), (10**6, "M"), (10**3, "k"), (1, ""))


def time_text(ps: float) -> str:
    """A time in picoseconds, for example ``143.6 us``."""
    return _in_unit(ps, _TIME_UNITS)


def bytes_text(count: float) -> str:
    """Bytes in powers of 1000, for example ``36.2 MB``."""
    return _in_unit(count, _BYTE_UNITS)


def gib_text(count: float) -> str:
    """Bytes in powers of 1024, as a number of GiB with two digits, for example ``12.00``."""
    return f"{count / 2**30:,.2f}"


def rate_text(per_s: float) -> str:
    """Things per second, for example ``3.3 M/s``."""
    return f"{_in_unit(per_s, _COUNT_UNITS).strip()}/s"


def share_text(part: float, whole: float = 1) -> str:
    """A share in per cent with three significant digits; ``-`` where there is nothing to take a share of."""
    if not whole:
        return "-"
    percent = 100 * part / whole
    digits = 1 if percent >= 10 else 2 if percent >= 1 else 3
    return f"{percent:.{digits}f} %" if percent else "0 %"


def _in_unit(amount: float, units: tuple[tuple[int, str], ...]) -> str:
    for factor, unit in units:
        if amount >= factor:
            scaled = amount / factor
            digits = 0 if factor == 1 or scaled >= 1000 else 1
            return f"{scaled:,.{digits}f} {unit}"
    return f"{amount:g} {units[-1][1]}"
