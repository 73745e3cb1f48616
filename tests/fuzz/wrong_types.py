"""Every field of a file with a value of every other type, one at a time: all of them, without chance."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from tests.fuzz.grammar import Raw

VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 0.5, -1e300, "", "x", "backward", "$x^{$", "\x1b[31m", [], ["x"], [1], [[1]], {},
    {"a": 1},
)  # fmt: skip


def with_wrong_types(tree: Any, values: tuple[Any, ...] = VALUES) -> Iterator[Any]:
    """Yield the tree with one field replaced, for each field and each value; equal fields of a list count once."""
    for path in _paths(tree):
        for value in values:
            changed = copy.deepcopy(tree)
            holder = changed
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = Raw("null") if value is None else copy.deepcopy(value)
            yield changed


def _paths(tree: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries: list[tuple[Any, Any]] = []
    if isinstance(tree, dict):
        entries = list(tree.items())
    elif isinstance(tree, list):
        kinds = {_shape(value): (index, value) for index, value in reversed(list(enumerate(tree)))}
        entries = sorted(kinds.values(), key=lambda entry: entry[0])
    for key, value in entries:
        yield (*before, key)
        yield from _paths(value, (*before, key))


def _shape(value: Any) -> str:
    """What makes two entries of a list alike: their fields, and texts that select a kind."""
    if isinstance(value, dict):
        selects = {key: value[key] for key in ("name", "kind") if isinstance(value.get(key), str)}
        return repr((sorted(value), selects))
    return type(value).__name__
