"""Read a user's TOML, JSON or CSV of bounded size and depth; any problem is an error of one line."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.inputs import read_bytes

DEEPEST = 32
"""Tables and lists within each other, at most."""
LARGEST_NUMBER = 2**64
"""Integers lie between this and its negative; what every file format and program can hold."""
_LONGEST_DIGITS = 21
_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
#: What may hold dots in TOML: long strings, comments, then keys; strings of one line look like quoted keys.
_DOTTED = re.compile(
    rf"""\"{{3}}(?:\\.|[^\\])*?\"{{3}}|'{{3}}.*?'{{3}}|\#[^\n]*"""
    rf"""|(?P<deep>{_KEY}(?:[ \t]*\.[ \t]*{_KEY}){{{DEEPEST}}})|{_KEY}""",
    re.DOTALL,
)

AnyPath = str | os.PathLike[str]


def read_text(path: AnyPath, what: str, max_bytes: int) -> str:
    """Return the text of a file, UTF-8 with or without a byte order mark.

    Parameters
    ----------
    path : the file
    what : the kind of file, for messages: ``"machine file"``
    max_bytes : its maximum size

    Raises
    ------
    BuddysimError
        where it can't be read, is longer, or isn't UTF-8
    """
    return decoded(read_bytes(path, what, max_bytes), f"{os.fspath(path)}: not a {what}")


def decoded(raw: bytes, where: str) -> str:
    """Bytes as text; a BuddysimError that begins with `where` if they aren't UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BuddysimError(f"{where}: byte {error.start} is not UTF-8 text") from None


def read_toml(path: AnyPath, what: str, max_bytes: int) -> dict[str, Any]:
    """The tables of a TOML file; the arguments are those of `read_text`."""
    return parse_toml(read_text(path, what, max_bytes), os.fspath(path))


def read_json(path: AnyPath, what: str, max_bytes: int) -> Any:
    """The content of a JSON file; the arguments are those of `read_text`."""
    return parse_json(read_text(path, what, max_bytes), os.fspath(path))


def parse_toml(text: str, where: str = "") -> dict[str, Any]:
    """The tables of a TOML text; a BuddysimError that begins with `where` if it isn't TOML, or out of bounds."""
    try:
        _check_keys(text)
        content = tomllib.loads(text)
        _check_bounds(content)
    except (ValueError, RecursionError) as error:
        raise BuddysimError(f"{_prefix(where)}not valid TOML: {_reason(error)}") from None
    return content


def parse_json(text: str, where: str = "") -> Any:
    """The content of a JSON text; a BuddysimError that begins with `where` if it isn't JSON, or out of bounds."""
    try:
        content = json.loads(text, parse_constant=_no_number, parse_int=_whole_number)
        _check_bounds(content)
    except (ValueError, RecursionError) as error:
        raise BuddysimError(f"{_prefix(where)}not valid JSON: {_reason(error)}") from None
    return content


def csv_rows(text: str, where: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV text with the number of the line in which each ends, without comments (``#``) and empty lines.

    Parameters
    ----------
    text : of the file
    where : what an error begins with

    Raises
    ------
    BuddysimError
        where a row is no CSV
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in reader:
            if cells and not cells[0].lstrip().startswith("#") and any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise BuddysimError(f"{where}: row {reader.line_num}: not CSV: {error}") from None


def toml_text(content: Mapping[str, Any], section: str = "") -> str:
    """Nested tables as TOML, a line per value.

    Parameters
    ----------
    content : strings, numbers, booleans, lists of them (their JSON is their TOML), tables, and lists of tables, by name
    section : dotted name of the table that `content` is; empty for a whole file
    """
    return "\n".join(_toml_lines(content, section)).strip() + "\n"


def toml_value(value: Any) -> str:
    """A text, number or boolean, or a list of them, as TOML: its JSON, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_lines(content: Mapping[str, Any], section: str) -> Iterator[str]:
    plain = {name: value for name, value in content.items() if not isinstance(value, Mapping) and not _is_tables(value)}
    if section and plain and not section.startswith("["):
        yield f"\n[{section}]"
    elif section.startswith("["):
        yield f"\n{section}"
        section = section.strip("[]")
    for name, value in plain.items():
        yield f"{_toml_key(name)} = {toml_value(value)}"
    for name, value in content.items():
        within = f"{section}.{_toml_key(name)}" if section else _toml_key(name)
        if isinstance(value, Mapping):
            yield from _toml_lines(value, within)
        elif _is_tables(value):
            for table in value:
                yield from _toml_lines(table, f"[[{within}]]")


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _toml_key(name: str) -> str:
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else toml_value(name)


def _prefix(where: str) -> str:
    return f"{where}: " if where else ""


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if "set_int_max_str_digits" in str(error):
        return "an integer with thousands of digits"
    return str(error)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


def _whole_number(digits: str) -> int:
    if len(digits) > _LONGEST_DIGITS:
        raise ValueError(f"an integer with {len(digits)} digits")
    return int(digits)


def _check_keys(text: str) -> None:
    """Raises a ValueError for a dotted key that is too deep: tomllib's memory grows with the square of its parts."""
    if any(match["deep"] for match in _DOTTED.finditer(text)):
        raise ValueError(f"tables or lists nested more than {DEEPEST} deep")


def _check_bounds(content: object) -> None:
    """Raises a ValueError for values that no reader expects: depth, huge or infinite numbers, dates."""
    left: list[tuple[object, int]] = [(content, 0)]
    while left:
        value, depth = left.pop()
        if isinstance(value, dict | list):
            if depth >= DEEPEST:
                raise ValueError(f"tables or lists nested more than {DEEPEST} deep")
            left += ((inner, depth + 1) for inner in (value.values() if isinstance(value, dict) else value))
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise ValueError(f"{value} where a finite number is expected")
        elif isinstance(value, int):
            if not -LARGEST_NUMBER < value < LARGEST_NUMBER:
                raise ValueError("an integer beyond 64 bits")
        elif value is not None and not isinstance(value, str):
            raise ValueError(f"{shortened(str(value))} is a date or a time: expected none")
