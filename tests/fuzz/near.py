"""Changes that keep a file's structure, so that readers accept many of them and the code behind the readers runs.

A value is replaced by another one of its type: of the same key elsewhere in the file, or a number near it. Entries of
lists are lost, doubled and exchanged; keys, which may be optional, are lost.
"""

from __future__ import annotations

import copy
import random
import re
from typing import Any

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_FACTORS = (0.0, 0.1, 0.5, 0.9, 1.1, 2.0, 10.0)
_CELL = re.compile(r"([\s,=:()\"]+)")

#: What holds a value, the value's key there, and the key of the nearest table.
Node = tuple[Any, Any, str]


def near_tree(tree: Any, rng: random.Random, most: int = 3) -> Any:
    """Return the tree with up to `most` changes that keep its structure."""
    changed = copy.deepcopy(tree)
    for _ in range(rng.randint(1, most)):
        nodes = _nodes(changed)
        if not nodes:
            break
        holder, key, name = rng.choice(nodes)
        value = holder[key]
        if isinstance(value, dict | list) and value and rng.random() < 0.5:
            _change_entries(value, rng)
        elif isinstance(holder, dict) and rng.random() < 0.1:
            del holder[key]
        else:
            alike = [other[at] for other, at, of in nodes if of == name and type(other[at]) is type(value)]
            holder[key] = copy.deepcopy(rng.choice(alike)) if rng.random() < 0.4 else _near(value, rng)
    return changed


def near_text(text: str, rng: random.Random, most: int = 3) -> str:
    """Return lines of cells with up to `most` changes: cells of the same column exchanged, numbers changed."""
    lines = text.split("\n")
    for _ in range(rng.randint(1, most)):
        at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        what = rng.randrange(10)
        if what == 0:
            lines.insert(at, lines[other])
        elif what == 1 and len(lines) > 1:
            del lines[at]
        elif what == 2:
            lines[at], lines[other] = lines[other], lines[at]
        else:
            cells, others = _CELL.split(lines[at]), _CELL.split(lines[other])
            cell = rng.randrange(len(cells))
            alike = what < 6 and len(others) == len(cells) and lines[other][:1] != "#"
            cells[cell] = others[cell] if alike else _near(cells[cell], rng)
            lines[at] = "".join(cells)
    return "\n".join(lines)


def _nodes(tree: Any) -> list[Node]:
    nodes: list[Node] = []
    left: list[tuple[Any, str]] = [(tree, "")]
    while left:
        holder, name = left.pop()
        if isinstance(holder, dict | list):
            for key in holder if isinstance(holder, dict) else range(len(holder)):
                within = key if isinstance(key, str) else name
                nodes.append((holder, key, within))
                left.append((holder[key], within))
    return nodes


def _change_entries(value: Any, rng: random.Random) -> None:
    if isinstance(value, dict):
        del value[rng.choice(sorted(value, key=str))]
        return
    at, other = rng.randrange(len(value)), rng.randrange(len(value))
    match rng.randrange(4):
        case 0:
            del value[at]
        case 1:
            value.insert(at, copy.deepcopy(value[other]))
        case 2:
            value[at], value[other] = value[other], value[at]
        case 3:
            value.append(copy.deepcopy(value[at]))


def _near(value: Any, rng: random.Random) -> Any:
    """Return another value of a type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((0, 1, value + 1, max(0, value - 1), 2 * value, value // 2, value + 8, 10 * value))
    if isinstance(value, float):
        return value * rng.choice(_FACTORS)
    if isinstance(value, str) and (number := _NUMBER.search(value)):
        text = number.group()
        new = (
            str(_near(int(text), rng))
            if text.isdecimal() and len(text) < 1000
            else f"{float(text) * rng.choice(_FACTORS):g}"
        )
        return value[: number.start()] + new + value[number.end() :]
    return value
