"""Read a user's TOML, JSON or CSV of bounded size and depth; any problem is an error of one line."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.inputs import read_bytes
from buddysim.base.parsers.json_text import loads
from buddysim.base.parsers.refusal import refusal

DEEPEST = 32
"""Tables and lists within each other, at most."""
LARGEST_NUMBER = 2**64
"""Integers lie between this and its negative; what every file format and program can hold."""
LARGEST_TABLE = 1 << 30
"""Bytes of a table that comes with the sources."""
_TOO_DEEP = f"tables or lists nested more than {DEEPEST} deep"
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


def read_csv(path: AnyPath, what: str, max_bytes: int) -> Iterator[dict[str, str]]:
    """The rows of a CSV file (`csv_tables`); the arguments are those of `read_text`."""
    return csv_tables(read_text(path, what, max_bytes), os.fspath(path))


def parse_toml(text: str, where: str = "") -> dict[str, Any]:
    """The tables of a TOML text; a BuddysimError that begins with `where` if it isn't TOML, or out of bounds."""
    begin = f"{_prefix(where)}not valid TOML"
    if any(match["deep"] for match in _DOTTED.finditer(text)):  # tomllib's memory grows with the square of its parts
        raise BuddysimError(f"{begin}: {_TOO_DEEP}")
    return dict(_bounded(_toml(text, begin), begin))


def _toml(text: str, begin: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except Exception as error:
        raise refusal(error, begin) from None


def parse_json(text: str, where: str = "") -> Any:
    """The content of a JSON text; a BuddysimError that begins with `where` if it isn't JSON, or out of bounds."""
    begin = f"{_prefix(where)}not valid JSON"
    return _bounded(loads(text, begin, tuple), begin)


def check_keys(text: str | bytes, where: str) -> None:
    """A BuddysimError where an object of a JSON text has a key twice, of which other readers take the last."""
    parse_json(text if isinstance(text, str) else decoded(text, where), where)


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
    while (cells := _next_row(reader, where)) is not None:
        if cells and not cells[0].lstrip().startswith("#") and any(cell.strip() for cell in cells):
            yield reader.line_num, cells


def csv_tables(text: str, where: str) -> Iterator[dict[str, str]]:
    """Rows of a CSV text as cells by the names of the first row; `csv_rows` describes the arguments."""
    names: list[str] = []
    for line, cells in csv_rows(text, where):
        if not names:
            names = cells
        elif len(cells) != len(names):
            raise BuddysimError(f"{where}: row {line}: {len(cells)} cells: expected {len(names)}")
        else:
            yield dict(zip(names, cells, strict=True))


def _next_row(reader: Any, where: str) -> list[str] | None:
    try:
        return next(reader, None)
    except Exception as error:
        raise refusal(error, f"{where}: row {reader.line_num}: not CSV") from None


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


def _bounded(value: Any, begin: str, depth: int = 0) -> Any:
    """Return a content of plain tables and lists; refuse what no reader expects.

    That is: depth, huge or infinite numbers, dates, and keys of JSON that occur twice (objects are tuples of pairs).
    """
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, dict | list | tuple):
        if depth >= DEEPEST:
            raise BuddysimError(f"{begin}: {_TOO_DEEP}")
        if isinstance(value, list):
            return [_bounded(inner, begin, depth + 1) for inner in value]
        table: dict[str, Any] = {}
        for key, inner in value.items() if isinstance(value, dict) else value:
            if key in table:
                raise BuddysimError(f"{begin}: key {shortened(key)} occurs twice")
            table[key] = _bounded(inner, begin, depth + 1)
        return table
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BuddysimError(f"{begin}: {value} where a finite number is expected")
    elif not isinstance(value, int):
        raise BuddysimError(f"{begin}: {shortened(str(value))} is a date or a time: expected none")
    elif not -LARGEST_NUMBER < value < LARGEST_NUMBER:
        raise BuddysimError(f"{begin}: an integer beyond 64 bits")
    return value
