"""Nested tables and their dotted keys."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.base.dotted import flat, merged, nested, taken, unknown_key

TABLES = {"name": "x", "l2": {"size": "4 MiB", "ways": 16}, "dram": {"timing": {"tRP": "1 ns"}}, "empty": {}}


def test_flat_tables_have_dotted_keys_in_their_order() -> None:
    assert list(flat(TABLES)) == [("name", "x"), ("l2.size", "4 MiB"), ("l2.ways", 16), ("dram.timing.tRP", "1 ns")]


def test_merged_tables_keep_what_the_upper_ones_do_not_have() -> None:
    above = {"l2": {"ways": 8, "line": 128}, "dram": "none", "link": {"header": 0}}
    assert merged(TABLES, above) == {
        "name": "x",
        "l2": {"size": "4 MiB", "ways": 8, "line": 128},
        "dram": "none",
        "empty": {},
        "link": {"header": 0},
    }
    assert TABLES["l2"] == {"size": "4 MiB", "ways": 16}
    assert merged({"dram": "none"}, {"dram": {"channels": 2}}) == {"dram": {"channels": 2}}


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("l2.siez", "l2.siez: unknown key (nearest: l2.size)"),
        ("l2", "l2: a section, not a key: expected one of l2.size, l2.ways"),
        ("zzz", "zzz: unknown key"),
    ],
)
def test_errors_of_unknown_keys(key: str, problem: str) -> None:
    assert unknown_key(key, iter(["l2.size", "l2.ways"])) == problem


NESTED = st.recursive(
    st.integers(),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, min_size=1),
    max_leaves=8,
).filter(lambda tables: isinstance(tables, dict))


@given(NESTED)
def test_nested_is_the_reverse_of_flat(tables: dict[str, Any]) -> None:
    assert nested(dict(flat(tables))) == tables


@given(NESTED, st.sampled_from(["a", "a.b", "b.c.a"]))
def test_taken_splits_tables(tables: dict[str, Any], key: str) -> None:
    others, table = taken(tables, key)
    assert (others if table == {} else merged(others, nested({key: table}))) == tables
    assert taken(others, key) == (others, {})


def test_taken_takes_a_table_and_leaves_no_empty_one() -> None:
    assert taken({"a": {"b": {"x": 1}}, "c": 2}, "a.b") == ({"c": 2}, {"x": 1})
    assert taken({"a": {"b": {"x": 1}, "d": 3}}, "a.b") == ({"a": {"d": 3}}, {"x": 1})
    assert taken({"a": 4}, "a.b") == ({"a": 4}, {})
