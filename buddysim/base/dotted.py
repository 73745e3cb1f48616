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
