"""Nested tables and their dotted keys: ``{"l2": {"size": "4 MiB"}}`` and ``l2.size``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from buddysim.base.hints import hint, shortened


def flat(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The dotted keys of nested tables, with their values."""
    for name, value in tables.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The nested tables of values by dotted key."""
    tables: dict[str, Any] = {}
    for key, value in values.items():
        *outer, last = key.split(".")
        table = tables
        for name in outer:
            table = table.setdefault(name, {})
        table[last] = value
    return tables


def taken(tables: Mapping[str, Any], key: str) -> tuple[dict[str, Any], Any]:
    """Take a dotted table out of nested tables; returns the others, and the table, which is empty if there is none."""
    name, _, inner = key.partition(".")
    others = {other: table for other, table in tables.items() if other != name}
    table = tables.get(name, {})
    if not inner:
        return others, table
    if not isinstance(table, Mapping):
        return dict(tables), {}
    rest, table = taken(table, inner)
    return others | ({name: rest} if rest else {}), table


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested tables; where both have a key, the value of `above` stands."""
    tables = dict(below)
    for name, value in above.items():
        under = tables.get(name)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            tables[name] = merged(under, value)
        else:
            tables[name] = value
    return tables


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the text of an error about an unknown dotted key."""
    known = list(known)
    inside = [name for name in known if name.startswith(f"{key}.")]
    if inside:
        return f"{key}: a section, not a key: expected one of {', '.join(inside)}"
    return f"{shortened(key)[1:-1]}: unknown key{hint(key, known)}"
