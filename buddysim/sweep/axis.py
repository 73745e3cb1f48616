"""Axes of a study: an axis converts a value as a user writes it into the one that is stored and hashed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.option import FILE, Option
from buddysim.base.paths import expanded
from buddysim.base.ranges import parse_range
from buddysim.machine.units import parse_size

#: A point's value on an axis; JSON can carry it to a worker.
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

    def value(self, name: str, raw: object) -> Value:
        """The value of what a user wrote; a BuddysimError that names the axis where it is wrong."""
        if raw is None:
            return None
        try:
            return self.read(raw)
        except ValueError as error:
            raise BuddysimError(f"{name}: {shortened(raw)}: {error}") from None


def file_value(raw: object) -> str:
    """The absolute path of a file of the user's, without ``..`` and links in its folders: one path for one file."""
    if not isinstance(raw, str | Path) or not str(raw).strip():
        raise ValueError("expected the path of a file")
    path = expanded(raw)
    return str(path.parent.resolve() / path.name) if path.name not in ("", "..") else str(path.resolve())


def text(raw: object) -> str:
    """Any text."""
    if not isinstance(raw, str) or not raw.strip():
        raise ValueError("expected a text")
    return raw.strip()


def whole(raw: object) -> int:
    """``3`` or ``"3"``."""
    if isinstance(raw, bool):
        raise ValueError("expected an integer")
    if isinstance(raw, str):
        try:
            return int(raw)
        except ValueError:
            raise ValueError("expected an integer") from None
    number = getattr(raw, "__index__", None)
    if number is None:
        raise ValueError("expected an integer")
    return int(number())


def number(raw: object) -> float:
    """``0.1``, ``"0.1"`` or ``1``."""
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise ValueError("expected a number")
    try:
        value = float(raw)
    except ValueError:
        raise ValueError("expected a number") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("expected a finite number")
    return value + 0.0  # -0.0 is 0.0


def switch(raw: object) -> bool:
    """``true`` or ``"true"``."""
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.strip().lower() in ("true", "false"):
        return raw.strip().lower() == "true"
    raise ValueError("expected true or false")


def size(raw: object) -> int:
    """``"8 GiB"``, or bytes."""
    return parse_size(raw) if isinstance(raw, str) and not raw.strip().isdecimal() else whole(raw)


def kernels(raw: object) -> str | None:
    """``3``, ``"3:7"``, ``"3:"`` or ``":7"``, as ``"FIRST:END"``; all kernels are None."""
    if isinstance(raw, slice):
        raw = f"{'' if raw.start is None else raw.start}:{'' if raw.stop is None else raw.stop}"
    first, end = parse_range(str(raw).replace(" ", ""), "kernel", "3 or 3:7")
    if end is None:
        return f"{first}:" if first else None
    return f"{first}:{end}"


def fraction(raw: object) -> str:
    """``1.5``, ``"3/2"``: an exact fraction as text."""
    if isinstance(raw, bool) or not isinstance(raw, str | int | float | Fraction):
        raise ValueError("expected a number")
    try:
        return str(Fraction(str(raw) if isinstance(raw, float) else raw))
    except (ValueError, ZeroDivisionError):
        raise ValueError("expected a number, for example 1.5 or 3/2") from None


_READERS: dict[type, Reader] = {bool: switch, int: whole, float: number, str: text}


def option_axis(option: Option, read: Reader | None = None) -> Axis:
    """Return the axis of an option; `read` reads its values, None: as the option's type and metavar say."""
    file = option.metavar == FILE
    reader = read or (file_value if file else size if option.metavar == "SIZE" else _READERS[option.type])
    metavar = "true|false" if option.type is bool else option.metavar
    return Axis(reader, option.text, metavar, option.default, file)


def canonical(value: Value) -> str:
    """Return a text that is equal for equal values only."""
    return json.dumps(value, ensure_ascii=False)
