"""Nested tables and their dotted keys."""

from __future__ import annotations

import pytest

from buddysim.base.dotted import flat, merged, unknown_key

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
