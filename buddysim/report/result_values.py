"""Values of results and machines as tables show them: three digits, each quantity in its natural unit."""

from __future__ import annotations

from typing import Any

from buddysim.machine.units import Frequency, format_flops
from buddysim.report.quantities import format_bytes, format_count, format_significant, format_time
from buddysim.sweep.distinguishing_columns import KEY, quantity

_KEY_DIGITS = 10
#: Settings whose values are paths, of which tables show the last part.
_FILES = ("trace", "network", "targets")
_BASE_UNITS = {"time_ps": " ps", "time_ms": " ms", "bytes": " B", "bandwidth": " B/s", "frequency": " Hz"}


def format_value(name: str, value: Any) -> str:
    """Return the value of a column; numbers are in base units, as stores have them."""
    if value is None:
        return "-"
    if name == KEY:
        return str(value)[:_KEY_DIGITS]
    if name in _FILES and isinstance(value, str):
        return value.rsplit("/", 1)[-1]
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, int | float):
        return str(value)
    kind = quantity(name)
    if kind is not None:
        return _format_with_unit(value, kind)
    is_integer = isinstance(value, int) or (value.is_integer() and abs(value) >= 1000)
    return format_count(value) if is_integer else format_significant(value)


def format_exact(name: str, value: Any) -> str:
    """Return the value of a column with all digits, for values that three digits don't tell apart."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    digits = f"{value:,}" if isinstance(value, int) else f"{value:,.9g}"
    return digits + _BASE_UNITS.get(quantity(name) or "", "")


def _format_with_unit(value: float, kind: str) -> str:
    if kind == "time_ps":
        return format_time(value)
    if kind == "time_ms":
        return format_time(value * 1e9)
    if kind == "bytes":
        return format_bytes(value)
    if kind == "frequency":
        return str(Frequency(round(value)))
    return format_flops(round(value)) if kind == "flops" else f"{format_significant(value / 1e9)} GB/s"
