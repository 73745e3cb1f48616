"""What a study can vary: an axis takes a value as a user writes it and gives the one that is stored and hashed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.ranges import parse_range
from buddysim.machine.units import parse_size

#: What a point has for an axis: JSON can carry it to a worker.
Value = str | int | float | bool | None
Reader = Callable[[object], Value]


@dataclass(frozen=True)
class Axis:
    """One parameter of an engine's `simulate`.

    Attributes
    ----------
    read : the value of what a user wrote, as text or as a value of TOML or Python; ValueError says what was expected
    help : one line
    metavar : of its value, in help texts
    default : where a study doesn't say it
    file : its value is the path of a file, whose content counts
    """

    read: Reader
    help: str
    metavar: str = "VALUE"
    default: Value = None
    file: bool = False

    def value(self, name: str, given: object) -> Value:
        """The value of what a user wrote; a BuddysimError that names the axis where it is wrong."""
        if given is None:
            return None
        try:
            return self.read(given)
        except ValueError as error:
            raise BuddysimError(f"{name}: {shortened(given)}: {error}") from None


def text(given: object) -> str:
    """Any text."""
    if not isinstance(given, str) or not given.strip():
        raise ValueError("expected a text")
    return given.strip()


def whole(given: object) -> int:
    """``3`` or ``"3"``."""
    if isinstance(given, bool):
        raise ValueError("expected a whole number")
    if isinstance(given, str):
        try:
            return int(given)
        except ValueError:
            raise ValueError("expected a whole number") from None
    number = getattr(given, "__index__", None)
    if number is None:
        raise ValueError("expected a whole number")
    return int(number())


def number(given: object) -> float:
    """``0.1``, ``"0.1"`` or ``1``."""
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise ValueError("expected a number")
    try:
        found = float(given)
    except ValueError:
        raise ValueError("expected a number") from None
    if found != found or found in (float("inf"), float("-inf")):
        raise ValueError("expected a finite number")
    return found + 0.0  # -0.0 is 0.0


def switch(given: object) -> bool:
    """``true`` or ``"true"``."""
    if isinstance(given, bool):
        return given
    if isinstance(given, str) and given.strip().lower() in ("true", "false"):
        return given.strip().lower() == "true"
    raise ValueError("expected true or false")


def size(given: object) -> int:
    """``"8 GiB"``, or bytes."""
    return parse_size(given) if isinstance(given, str) and not given.strip().isdecimal() else whole(given)


def kernels(given: object) -> str | None:
    """``3``, ``"3:7"``, ``"3:"`` or ``":7"``, as ``"FIRST:END"``; all kernels are None."""
    if isinstance(given, slice):
        given = f"{'' if given.start is None else given.start}:{'' if given.stop is None else given.stop}"
    first, end = parse_range(str(given).replace(" ", ""), "kernel", "3 or 3:7")
    if end is None:
        return f"{first}:" if first else None
    return f"{first}:{end}"


def fraction(given: object) -> str:
    """``1.5``, ``"3/2"``: an exact fraction as text."""
    if isinstance(given, bool) or not isinstance(given, str | int | float | Fraction):
        raise ValueError("expected a number")
    try:
        return str(Fraction(str(given) if isinstance(given, float) else given))
    except (ValueError, ZeroDivisionError):
        raise ValueError("expected a number, for example 1.5 or 3/2") from None


def canonical(value: Value) -> str:
    """The same text for equal values, another for others."""
    return json.dumps(value, ensure_ascii=False)
