"""Text files of users are parsed within limits; other files are refused in one line."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.base.textfile import DEEPEST, csv_rows, parse_json, parse_toml, read_json, read_text, read_toml, toml_text

PACKAGE = Path(__file__).parents[2] / "buddysim"
DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1\na = 2", "not valid TOML"),
        (f"a = {DIGITS}", "thousands of digits"),
        (f"a = 0x{'f' * 5000}", "beyond 64 bits"),
        (f"a = {'9' * 4000}", "beyond 64 bits"),
        ("a = 1e999", "inf where a finite number"),
        ("a = nan", "nan where a finite number"),
        ("a = 1979-05-27", "is a date"),
        (f"a = {'[' * 5000}{']' * 5000}", "nested too deeply"),
        (f"a = {'[' * 40}{']' * 40}", f"nested more than {DEEPEST} deep"),
        (".".join(["a"] * 50000) + " = 1", f"nested more than {DEEPEST} deep"),
        ("\x1b[2J = 1", "not valid TOML"),
    ],
)
def test_toml_out_of_bounds(text: str, expected: str) -> None:
    with pytest.raises(BuddysimError, match=expected) as refused:
        parse_toml(text, "x.toml")
    assert str(refused.value).startswith("x.toml: ")
    assert str(refused.value).isprintable()


def test_a_long_dotted_key_costs_no_memory() -> None:
    """The standard library's parser keeps all prefixes of a key: 10 GB for 100 kB of text."""
    tracemalloc.start()
    try:
        for text in (".".join(["a"] * 50000) + " = 1", "[" + " . ".join(['"b"'] * 50000) + "]"):
            with pytest.raises(BuddysimError, match=f"nested more than {DEEPEST} deep"):
                parse_toml(text)
        assert tracemalloc.get_traced_memory()[1] < 100 * len(text)
    finally:
        tracemalloc.stop()


DOTS = ".".join(["a"] * 50)


@pytest.mark.parametrize("text", ['"{}"', "'{}'", '"""\n{}"""', "'''\n{}'''", '"\\"{}"', "1 # {}", '["{}", "x"]'])
def test_dots_of_strings_and_comments_are_no_keys(text: str) -> None:
    assert parse_toml(f"a = {text.format(DOTS)}\nb = 2")["b"] == 2


def test_toml_keys_as_deep_as_lists() -> None:
    deepest = ".".join(["a"] * DEEPEST)
    assert parse_toml(f"{deepest} = 1") == parse_toml(f"[{deepest[:-2]}]\na = 1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "not valid JSON"),
        (f"[{DIGITS}]", "an integer with thousands of digits"),
        ("[18446744073709551616]", "beyond 64 bits"),
        ("[1e999]", "inf where a finite number"),
        ("[NaN]", "nan where a finite number"),
        ("[-Infinity]", "-inf where a finite number"),
        ("[" * 100000, "nested too deeply"),
        ('{"a": 1, "b": 2, "a": 1}', "key 'a' occurs twice"),
        ('[{"a": {"b": 1, "b": 1}}]', "key 'b' occurs twice"),
        ("[" * 40 + "]" * 40, f"nested more than {DEEPEST} deep"),
        ('{"a":' * 40 + "1" + "}" * 40, f"nested more than {DEEPEST} deep"),
    ],
)
def test_json_out_of_bounds(text: str, expected: str) -> None:
    with pytest.raises(BuddysimError, match=expected):
        parse_json(text, "x.json")


def test_what_is_within_the_bounds_is_read(tmp_path: Path) -> None:
    deep = "[" * DEEPEST + "]" * DEEPEST
    assert parse_json('{"a": 18446744073709551615, "b": -1.5, "c": [null, true]}') == {
        "a": 2**64 - 1,
        "b": -1.5,
        "c": [None, True],
    }
    parse_json(deep)
    (tmp_path / "x.toml").write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert read_toml(tmp_path / "x.toml", "table", 100) == {"a": 1}
    (tmp_path / "x.json").write_text("[1]")
    assert read_json(tmp_path / "x.json", "list", 100) == [1]


def test_what_is_no_text_file_is_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "binary").write_bytes(b"a = \xff")
    (tmp_path / "x.incomplete").write_text("a = 1")
    for path, expected in (
        (tmp_path / "pipe", "not a regular file"),  # and doesn't wait for a writer
        ("/dev/zero", "not a regular file"),
        (tmp_path, "Is a directory"),
        (tmp_path / "none", "No such file"),
        (tmp_path / "binary", "byte 4 is not UTF-8"),
        (tmp_path / "x.incomplete", "what an interrupted capture left"),
        ("", "an empty name"),
        ("a\0b", "null"),
        (tmp_path / ("n" * 300), "File name too long"),
    ):
        with pytest.raises(BuddysimError, match=expected):
            read_text(path, "machine file", 100)
    (tmp_path / "long").write_text("a" * 101)
    with pytest.raises(BuddysimError, match="longer than 100 bytes"):
        read_text(tmp_path / "long", "machine file", 100)


def test_csv() -> None:
    assert list(csv_rows('a,b\n# no\n\n"1\n2",3\n', "x.csv")) == [(1, ["a", "b"]), (5, ["1\n2", "3"])]
    for text in ('a\n"b', "a\n" + "x" * 200_000, 'a"b\n"c"d'):
        with pytest.raises(BuddysimError, match="not CSV"):
            list(csv_rows(text, "x.csv"))


KEYS = st.text(max_size=5)
VALUES = st.integers(-(2**63), 2**63 - 1) | st.text() | st.booleans()


@given(st.recursive(st.dictionaries(KEYS, VALUES), lambda inner: st.dictionaries(KEYS, inner), max_leaves=4))
def test_tables_are_read_as_they_were_written(content: dict[str, object]) -> None:
    def without_empty(table: dict[str, object]) -> dict[str, object]:
        filled = {k: without_empty(v) if isinstance(v, dict) else v for k, v in table.items()}
        return {k: v for k, v in filled.items() if v != {}}

    assert parse_toml(toml_text(content)) == without_empty(content)
