"""Changed files as hypothesis strategies: a valid example in which some values are replaced by unexpected ones."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.near import near_tree

#: The largest seed of changes of bytes.
_SEEDS = 2**32 - 1


class Raw(str):
    """Text that is written into a file verbatim."""

    __slots__ = ()


_HUGE = "9" * 5000
#: Replacements of values in a tree; texts other than `Raw` are quoted.
HOSTILE: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 7, 0.5, -0.5, 1e-9, 1e9, 1e18, 1e300, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, -(2**63),
    True, False, "", " ", "x", "nan", "inf", "-1", "1e999", "0x10", "backward", "*", "[", "]", "..", "../x",
    "/dev/null",
    "/dev/zero", "/etc", "a\x1b[31mred", "\u202egnp", "a\nb", "a\rb", "\x7f", "\ud800", "x" * 5000, "9" * 40, "1 GiB",
    "16 TiB", "1e400 GB/s", "-1 ns", [], {}, [[]], [None], [1, "a", {}], {"a": {"b": {"c": 1}}}, ["x"] * 300,
    Raw("NaN"), Raw("Infinity"), Raw("-Infinity"), Raw("nan"), Raw("-inf"), Raw("1e999"), Raw(_HUGE), Raw("-" + _HUGE),
    Raw("0x" + "f" * 4000), Raw("[" * 3000 + "]" * 3000), Raw("[" * 40 + "1" + "]" * 40), Raw("{\"a\":" * 3000),
    Raw("null"), Raw("1979-05-27T07:32:00Z"), Raw("07:32:00"), Raw("'''"), Raw("\"\\ud800\""), Raw("1_000"), Raw(""),
)  # fmt: skip
#: Replacements of words of a line.
HOSTILE_WORDS = (
    "", "0", "1", "-1", "3", "32", "255", "256", "65536", "4294967295", "4294967296", "9223372036854775808",
    "18446744073709551615", "18446744073709551616", "0x0", "0xffffffffffffffff", "-0x1", "1e999", "nan", "inf", "1.5",
    "9" * 5000, "x", "*", "../x", "/dev/null", "kernel-1.traceg", "\x1b[31m", "\u202e", "\0", "\t",
    "é" * 50, "x" * 5000,
    "(", ")", "(1,1,1)", "(0,0,0)", "(4294967295,1,1)", "\"", "'", "#", "#END_TB", "#BEGIN_TB", "=",
)  # fmt: skip


@st.composite
def changed_tree(draw: st.DrawFn, tree: Any, max_changes: int = 4) -> Any:
    """Generate a tree with up to `max_changes` changes: values replaced, keys lost, added, renamed, parts doubled."""
    changed = copy.deepcopy(tree)
    for _ in range(draw(st.integers(1, max_changes))):
        changed = _change(draw, changed)
    return changed


def _change(draw: st.DrawFn, tree: Any) -> Any:
    """Change the tree at a random node."""
    holder, parent, index = tree, None, None
    while isinstance(holder, dict | list) and holder and draw(st.integers(0, 7)):
        parent = holder
        index = draw(st.sampled_from(sorted(holder, key=str) if isinstance(holder, dict) else range(len(holder))))
        holder = parent[index]
    what = draw(st.sampled_from(("replace", "replace", "replace", "lose", "add", "rename", "double", "nearby")))
    value = copy.deepcopy(draw(st.sampled_from(HOSTILE)))
    if parent is None:
        return value if what == "replace" and draw(st.booleans()) else tree
    if what == "replace":
        parent[index] = value
    elif what == "lose":
        del parent[index]
    elif what == "nearby" and isinstance(holder, int | float) and not isinstance(holder, bool):
        parent[index] = draw(st.sampled_from((holder + 1, holder - 1, -holder, holder * 2, holder * 1000, holder / 3)))
    elif isinstance(parent, list):
        parent.insert(index, copy.deepcopy(holder) if what == "double" else value)
    elif what == "rename":
        parent[draw(st.sampled_from(("", "x", "Name", "a.b", "\x1b[1m", "\u202e", "y" * 3000)))] = parent.pop(index)
    else:
        parent[f"{index}2" if what == "double" else "unknown"] = copy.deepcopy(holder)
    return tree


def seeds() -> st.SearchStrategy[int]:
    """Generate seeds of changes that hypothesis does not shrink."""
    return st.integers(0, _SEEDS)


def near_or_changed(tree: Any, max_changes: int = 4) -> st.SearchStrategy[Any]:
    """Generate a tree that is changed near what it was, or with unexpected values, or both."""

    def change(seed: int) -> st.SearchStrategy[Any]:
        near = near_tree(tree, random.Random(seed))
        return st.just(near) if seed % 4 else changed_tree(near, 1)

    return seeds().flatmap(change) | changed_tree(tree, max_changes)


def json_of(tree: Any) -> bytes:
    """Format a tree as JSON, `Raw` values verbatim."""
    return _text_of(tree, "{%s}", "%s: %s").encode("utf-8", "surrogatepass")


def toml_of(tree: Any) -> bytes:
    """Format a tree as TOML: a line for each key, its value inline."""
    if not isinstance(tree, dict):
        return _text_of(tree, "{%s}", "%s = %s").encode("utf-8", "surrogatepass")
    lines = [f"{json.dumps(str(key))} = {_text_of(value, '{%s}', '%s = %s')}\n" for key, value in tree.items()]
    return "".join(lines).encode("utf-8", "surrogatepass")


def _text_of(value: Any, table: str, pair: str) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return table % ", ".join(pair % (json.dumps(str(k)), _text_of(v, table, pair)) for k, v in value.items())
    if isinstance(value, list):
        return f"[{', '.join(_text_of(each, table, pair) for each in value)}]"
    return json.dumps(value)


@st.composite
def changed_text(draw: st.DrawFn, text: str, max_changes: int = 4) -> bytes:
    """Generate a text with up to `max_changes` changed words or lines."""
    lines = text.split("\n")
    for _ in range(draw(st.integers(1, max_changes))):
        at = draw(st.integers(0, len(lines) - 1))
        what = draw(st.sampled_from(("word", "word", "word", "word", "lose", "double", "swap", "cut", "insert")))
        if what == "word":
            words = re.split(r"([\s,=:()\"]+)", lines[at])
            words[draw(st.integers(0, len(words) - 1))] = draw(st.sampled_from(HOSTILE_WORDS))
            lines[at] = "".join(words)
        elif what == "lose" and len(lines) > 1:
            del lines[at]
        elif what == "double":
            lines.insert(at, lines[at])
        elif what == "swap":
            other = draw(st.integers(0, len(lines) - 1))
            lines[at], lines[other] = lines[other], lines[at]
        elif what == "cut":
            lines = lines[: at + 1]
        else:
            lines.insert(at, draw(st.sampled_from(HOSTILE_WORDS)))
    return "\n".join(lines).encode("utf-8", "surrogatepass")


@st.composite
def changed_bytes(draw: st.DrawFn, data: bytes, change: Callable[[random.Random, bytes], bytes]) -> bytes:
    """Generate bytes that `change` has changed, with a random seed."""
    return change(random.Random(draw(seeds())), data)


def mostly(usual: st.SearchStrategy[bytes], other: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Combine two strategies: the first in seven of eight cases."""
    return st.integers(0, 7).flatmap(lambda number: usual if number else other)
