"""Reads users' small text files as a whole, any problem an error of one line: machines, networks, targets, tables."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from buddysim.base.errors import BuddysimError


def read_text(path: str | os.PathLike[str], what: str, most_bytes: int) -> str:
    """The text of a file, UTF-8 with or without a byte order mark.

    Parameters
    ----------
    path : the file
    what : what the file should be, for messages: ``"machine file"``
    most_bytes : its maximum size

    Raises
    ------
    BuddysimError
        where it can't be read, is longer, or isn't UTF-8
    """
    try:
        with Path(path).open("rb") as file:
            raw = file.read(most_bytes + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BuddysimError(f"{_shown(path)}: can't read the {what}: {reason}") from None
    if len(raw) > most_bytes:
        raise BuddysimError(f"{path}: not a {what}: longer than {most_bytes} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BuddysimError(f"{path}: not a {what}: byte {error.start} is not UTF-8 text") from None


def parse_toml(text: str, where: str = "") -> dict[str, Any]:
    """The tables of a TOML text; a BuddysimError that begins with `where` if it isn't TOML."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise BuddysimError(f"{where}{': ' if where else ''}not valid TOML: {reason}") from None


def toml_text(content: Mapping[str, Any], section: str = "") -> str:
    """Nested tables as TOML, a line per value.

    Parameters
    ----------
    content : strings, numbers, booleans, lists of them (their JSON is their TOML), and tables, by name
    section : dotted name of the table that `content` is; empty for a whole file
    """
    return "\n".join(_toml_lines(content, section)).strip() + "\n"


def _toml_lines(content: Mapping[str, Any], section: str) -> Iterator[str]:
    plain = {name: value for name, value in content.items() if not isinstance(value, Mapping)}
    if section and plain:
        yield f"\n[{section}]"
    for name, value in plain.items():
        yield f"{_toml_key(name)} = {json.dumps(value, ensure_ascii=False)}"
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from _toml_lines(value, f"{section}.{_toml_key(name)}" if section else _toml_key(name))


def _toml_key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() else json.dumps(name)


def _shown(path: str | os.PathLike[str], most: int = 200) -> str:
    """A user's path, escaped and cut to fit a line."""
    text = ascii(os.fspath(path))[1:-1]
    return text if len(text) <= most else f"{text[:most]}..."
