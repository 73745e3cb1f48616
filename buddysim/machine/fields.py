"""Reads, bounds and writes the values of machine files and settings: ``Annotated[int, size("1 KiB", "4 GiB")]``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

from pydantic import Field, GetCoreSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from buddysim.base import hints
from buddysim.base.hints import shortened
from buddysim.base.kinds import registry
from buddysim.machine import units
from buddysim.machine.units import Bandwidth, Frequency, Time

MAX_TIME_PS = units.PS_PER_S
"""One second, so that sums of times stay far within 64 bits."""

MAX_CYCLES = 10**9
MAX_BYTES_PER_S = 10**15
MAX_BYTES_PER_CYCLE = 2**20

_SOURCE = "source of the default"
_ZERO_IS = "key that a zero stands for"
_ENDS = "least and largest values of sources"


def _no_alternatives(value: Any) -> list[Any]:
    return []


def _half_and_double(value: Any) -> list[Any]:
    """Half and twice a number; an integer's half is rounded down."""
    return [] if not value else [value // 2 if isinstance(value, int) else value / 2, value * 2]


def _scaled(value: Any) -> list[Any]:
    """Half and twice a quantity that has a unit."""
    return [replace(value, amount=amount) for amount in _half_and_double(value.amount)]


@dataclass(frozen=True)
class Value:
    """Reads a value of one kind from a file's text and writes it back, as a pydantic annotation.

    Attributes
    ----------
    read : value of a file's text; a ValueError where it is none
    write : the reverse
    kind : kind of quantity, for documents
    allowed : values that `read` takes, for documents
    members : the kind (`buddysim.base.kinds`) whose names `read` takes; empty: none. Documents list them.
    alternatives : values to compare with a value whose source is an assumption: half and double, or all other choices
    """

    read: Callable[[object], Any]
    write: Callable[[Any], Any]
    kind: str
    allowed: str
    members: str = ""
    alternatives: Callable[[Any], list[Any]] = _no_alternatives

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self.read, serialization=core_schema.plain_serializer_function_ser_schema(self.write)
        )


def key(
    default: Any, description: str, source: str, ends: Sequence[str] | None = None, zero_is: str | None = None
) -> Any:
    """A key that machine files may leave out.

    Parameters
    ----------
    default : its value there
    description : meaning, for documents
    source : source of the default, or the reason for it: "assumed: ..."
    ends : least and largest value that sources leave open, as a machine file has them, for `assumptions`; empty:
        `Value.alternatives`, although the source is no assumption
    zero_is : key whose value a 0 stands for
    """
    extra: dict[str, Any] = {_SOURCE: source, _ENDS: None if ends is None else list(ends), _ZERO_IS: zero_is}
    return Field(default=default, description=description, json_schema_extra=extra)


def default_source(field: FieldInfo) -> str:
    """Return the source of a key's default; empty if it names none."""
    extra = field.json_schema_extra
    return str(extra.get(_SOURCE, "")) if isinstance(extra, dict) else ""


def zero_is(field: FieldInfo) -> str | None:
    """Return the key whose value a 0 of this key stands for; None: a 0 is a value of its own."""
    extra = field.json_schema_extra
    return cast("str | None", extra.get(_ZERO_IS)) if isinstance(extra, dict) else None


def declared_ends(field: FieldInfo) -> list[str] | None:
    """Return the `ends` of a key; None if it declares none."""
    extra = field.json_schema_extra
    ends = extra.get(_ENDS) if isinstance(extra, dict) else None
    return [str(end) for end in ends] if isinstance(ends, list) else None


def _same(value: Any) -> Any:
    return value


def count(lowest: int, highest: int) -> Value:
    """An integer from ``lowest`` to ``highest``."""

    def read(value: object) -> int:
        number = _whole_number(value)
        if not lowest <= number <= highest:
            raise ValueError(f"{number} is out of range: expected an integer from {lowest} to {highest}")
        return number

    return Value(read, _same, "integer", f"{lowest} to {highest}", alternatives=_half_and_double)


def _whole_number(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        digits = value.strip().replace("_", "")
        if digits.lstrip("+-").isdecimal() and len(digits) < 20:
            return int(digits)
    raise ValueError(f"{shortened(value)} is not an integer")


def number(lowest: float, highest: float) -> Value:
    """A plain number from ``lowest`` to ``highest``."""

    def read(value: object) -> float:
        parsed = _number(value)
        if not lowest <= parsed <= highest:
            raise ValueError(f"{parsed:g} is out of range: expected {lowest:g} to {highest:g}")
        return parsed

    return Value(read, _same, "number", f"{lowest:g} to {highest:g}", alternatives=_half_and_double)


def _number(value: object) -> float:
    try:
        if not isinstance(value, bool) and isinstance(value, int | float | str):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"{shortened(value)} is not a number")


def switch() -> Value:
    """true or false."""
    return Value(_switch, _same, "switch", "true, false", alternatives=lambda value: [not value])


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise ValueError(f"{shortened(value)} is not a switch: expected true or false")


def one_of(*choices: str) -> Value:
    """One of a few names."""

    def read(value: object) -> str:
        if value not in choices:
            near = hints.hint(str(value), choices)
            raise ValueError(f"{shortened(value)} is unknown: expected one of {', '.join(choices)}{near}")
        return str(value)

    return Value(
        read, _same, "name", ", ".join(choices), alternatives=lambda value: [one for one in choices if one != value]
    )


def member_of(kind: str) -> Value:
    """The name of a member of a kind, plug-ins included."""

    def read(value: object) -> str:
        names = registry(kind).names()
        if value not in names:
            near = hints.hint(str(value), names)
            raise ValueError(f"{shortened(value)} is unknown: expected one of {', '.join(names)}{near}")
        return str(value)

    def others(value: object) -> list[str]:
        return [name for name in registry(kind).names() if name != value]

    return Value(read, _same, "name", "", members=kind, alternatives=others)


def text(longest: int) -> Value:
    """A line of text."""

    def read(value: object) -> str:
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{shortened(value)} is not a text")
        if len(value) > longest:
            raise ValueError(f"a text of {len(value)} characters is too long: expected at most {longest}")
        return " ".join(value.split())

    return Value(read, _same, "text", f"at most {longest} characters")


def size(lowest: str, highest: str) -> Value:
    """A number of bytes, written with its unit, from ``lowest`` to ``highest``."""
    lowest_bytes, highest_bytes = units.parse_size(lowest), units.parse_size(highest)

    def read(value: object) -> int:
        bytes_ = units.parse_size(value)
        if not lowest_bytes <= bytes_ <= highest_bytes:
            raise ValueError(f"{units.format_size(bytes_)} is out of range: expected {lowest} to {highest}")
        return bytes_

    allowed = lowest if lowest == highest else f"{lowest} to {highest}"
    return Value(read, units.format_size, "size", allowed, alternatives=_half_and_double)


def duration(zero: bool = True) -> Value:
    """A time of at most a second, or at most a billion cycles; ``zero`` allows zero."""

    def read(value: object) -> Time:
        time = units.parse_time(value)
        if time.amount == 0 and not zero:
            raise ValueError(f"{time} is out of range: expected more than zero")
        if time.clock is None and time.amount * units.TIME_UNITS[time.unit] > MAX_TIME_PS:
            raise ValueError(f"{time} is out of range: expected at most 1 s")
        if time.clock is not None and time.amount > MAX_CYCLES:
            raise ValueError(f"{time} is out of range: expected at most {MAX_CYCLES} cycles")
        return time

    allowed = f"{'' if zero else 'above 0, '}at most 1 s or 10^9 cycles"
    return Value(read, str, "time", allowed, alternatives=_scaled)


def frequency() -> Value:
    """A clock from 1 MHz to 100 GHz."""

    def read(value: object) -> Frequency:
        clock = units.parse_frequency(value)
        if not 10**6 <= clock.hz <= 10**11:
            raise ValueError(f"{clock} is out of range: expected 1 MHz to 100 GHz")
        return clock

    def half_and_double(clock: Frequency) -> list[Frequency]:
        return [Frequency(hz) for hz in _half_and_double(clock.hz)]

    return Value(read, str, "frequency", "1 MHz to 100 GHz", alternatives=half_and_double)


def flops() -> Value:
    """A peak rate of floating-point operations, from 1 GFLOPS to 1000 PFLOPS, as an integer per second."""

    def read(value: object) -> int:
        flops_per_s = units.parse_flops(value)
        if not 10**9 <= flops_per_s <= 10**18:
            raise ValueError(f"{units.format_flops(flops_per_s)} is out of range: expected 1 GFLOPS to 1000 PFLOPS")
        return flops_per_s

    return Value(read, units.format_flops, "rate of operations", "1 GFLOPS to 1000 PFLOPS")


def bandwidth(per_cycle: bool = True, zero: bool = False) -> Value:
    """Bytes per second; ``per_cycle`` allows bytes per cycle of a clock, ``zero`` 0."""

    def read(value: object) -> Bandwidth:
        rate = units.parse_bandwidth(value)
        if rate.clock is not None and not per_cycle:
            raise ValueError(f"{rate} is not a rate per second: expected for example '12.8 GB/s'")
        if zero and not rate.amount:
            return rate
        if rate.clock is None:
            if not 10**6 <= rate.bytes_per_s({}) <= MAX_BYTES_PER_S:
                raise ValueError(f"{rate} is out of range: expected 1 MB/s to 1000 TB/s")
        elif not Fraction(1, 1000) <= rate.amount <= MAX_BYTES_PER_CYCLE:
            raise ValueError(f"{rate} is out of range: expected 0.001 to {MAX_BYTES_PER_CYCLE} bytes per cycle")
        return rate

    allowed = "1 MB/s to 1000 TB/s" + (f"; 0.001 to {MAX_BYTES_PER_CYCLE} B per cycle" if per_cycle else "")
    return Value(read, str, "bandwidth", allowed, alternatives=_scaled)
