"""The screen: nothing is lost at any width; a pipe has 80 columns."""

from __future__ import annotations

import re

import hypothesis
import pytest
from hypothesis import strategies as st

from buddysim.report.screen import (
    Column,
    ScreenTable,
    Spanning,
    description_table,
    format_as_html,
    format_as_text,
    make_printable,
    print_screen,
)

WORDS = st.lists(st.text("abcdef", min_size=1, max_size=12), min_size=1, max_size=12).map(" ".join)
CELLS = st.text("0123456789.", max_size=14)


@st.composite
def tables(draw: st.DrawFn) -> ScreenTable:
    columns = draw(st.integers(1, 8))
    headings = [draw(WORDS).replace(" ", "\n") for _ in range(columns)]
    kinds = [Column(heading, left=draw(st.booleans())) for heading in headings]
    rows = draw(st.lists(st.tuples(*[CELLS] * columns), max_size=5))
    return ScreenTable([*kinds, Column("what", left=True, text=True)], [(*row, draw(WORDS)) for row in rows])


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


@hypothesis.given(WORDS, st.integers(20, 120))
def test_a_paragraph_wraps_and_loses_nothing(text: str, width: int) -> None:
    shown = format_as_text([text], width)
    assert shown.split() == text.split()
    assert all(len(line) <= width for line in shown.splitlines())


@hypothesis.given(tables(), st.integers(40, 120))
def test_a_table_loses_nothing(table: ScreenTable, width: int) -> None:
    shown = squeezed(format_as_text([table], width))
    assert "\u2026" not in shown
    for row in table.rows:
        assert all(squeezed(cell) in shown for cell in row[:-1])
    assert sum(map(len, map(squeezed, table.cells(len(table.columns) - 1)))) <= len(shown)


def test_a_wide_table_becomes_several_that_begin_alike() -> None:
    table = ScreenTable([Column("name", left=True), *(Column(f"number {n}") for n in range(8))], [("a", *"12345678")])
    shown = format_as_text([table], 40)
    assert max(map(len, shown.splitlines())) <= 40
    assert shown.count("name") == shown.count("\na ") == len(shown.split("\n\n")) > 1
    assert format_as_text([table]).count("name") == 1


def test_a_part_leaves_out_rows_and_titles_of_which_it_has_nothing() -> None:
    rows = [("traffic",), ("  demand", "1", "-"), ("time", "-", "7")]
    table = ScreenTable([Column("", left=True), Column("a" * 20), Column("b" * 20)], rows)
    first, second = format_as_text([table], 40).split("\n\n")
    assert ("traffic" in first, "demand" in first, "time" in first) == (True, True, False)
    assert ("traffic" in second, "demand" in second, "time" in second) == (False, False, True)


def test_a_title_of_one_cell_runs_over_all_columns() -> None:
    table = ScreenTable([Column("n", left=True), Column("bytes")], [("what is stored",), ("a", "1")])
    assert format_as_text([table], 40).splitlines() == ["n  bytes", "what is", "  stored", "a      1"]


def test_a_spanning_text_may_stand_after_any_number_of_cells() -> None:
    for own in (1, 2):
        row = (*"12"[:own], Spanning("nothing to do here"))
        table = ScreenTable([Column("a"), Column("b"), Column("c")], [row, ("3", "4", "5")])
        assert " ".join(format_as_text([table], 40).splitlines()[1].split()) == " ".join(row), own


def test_a_name_that_is_wider_than_its_column_is_folded_not_cut() -> None:
    """Names of allocations and kernels have no spaces to break at."""
    name = "".join(f"{n:02d}" for n in range(50))
    table = ScreenTable([Column("allocation", left=True), Column("bytes")], [(name, "1.0 KiB")])
    for width in (20, 40, 80):
        shown = format_as_text([table], width)
        assert "\u2026" not in shown
        assert name in "".join(re.findall(r"^\d+", shown, re.MULTILINE)), width
        assert all(len(line) <= width for line in shown.splitlines())


def test_a_part_leaves_out_columns_that_say_nothing() -> None:
    """Whole tables keep constant columns; a part of headings alone would look incomplete."""
    long = "b" * 30
    table = ScreenTable([Column("name"), Column(long), Column("c" * 30)], [("x", "1", "-"), ("y", "2", "")])
    assert "c" * 30 in format_as_text([table], 100)
    assert format_as_text([table], 40).splitlines() == [f"name  {long}", f"   x  {'1':>30}", f"   y  {'2':>30}"]


def test_columns_of_low_priority_are_left_out_first() -> None:
    columns = [Column("name", left=True), Column("a" * 20, priority=1), Column("b" * 20, priority=2), Column("c" * 20)]
    table = ScreenTable(columns, [("x", "1", "2", "3")])
    headings = {width: format_as_text([table], width).splitlines()[0].split() for width in (80, 60, 30)}
    assert headings[80] == ["name", "a" * 20, "b" * 20, "c" * 20]
    assert headings[60] == ["name", "a" * 20, "c" * 20]
    assert headings[30] == ["name", "c" * 20]


def test_names_are_shortened_in_their_middle_where_the_column_allows_it() -> None:
    table = ScreenTable([Column("name", left=True, shorten_to=10), Column("b" * 20)], [("abcdefghijklmnopqrst", "1")])
    assert "abcdefghijklmnopqrst" in format_as_text([table], 80)
    assert "abcd..qrst" in format_as_text([table], 32)


def test_group_heading_stands_above_its_columns() -> None:
    columns = [Column("name", left=True), Column("one", group="sizes of all"), Column("two", group="sizes of all")]
    shown = format_as_text([ScreenTable(columns, [("x", "1", "2"), (), ("y", "3", "4")])], 80)
    assert shown.splitlines() == ["  sizes of all", "name  one  two", "x       1    2", "", "y       3    4"]


def test_a_number_stays_with_its_unit() -> None:
    for width in range(20, 60):
        shown = format_as_text(["of the entries 12.5 % were there and 3.0 MiB in 4.5 ms at 9 GB/s of it"], width)
        assert not re.search(r"\d\n *(%|MiB|ms|GB/s)", shown)


def test_screen_has_the_width_of_columns_and_80_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "word " * 60
    monkeypatch.setenv("COLUMNS", "50")
    print_screen([text])
    assert 40 < max(map(len, capsys.readouterr().out.splitlines())) <= 50
    monkeypatch.delenv("COLUMNS")
    print_screen([text])
    assert 70 < max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_text_of_files_is_no_markup_and_steers_no_terminal() -> None:
    assert make_printable("\x1b[2Ja\nb") == "?[2Ja?b"
    assert "<b>" not in format_as_html(["<b>", description_table(("a", "b"), [("<b>", "[red]x")])])
    assert "[red]x" in format_as_text([description_table(("a", "b"), [("<b>", "[red]x")])], 80)
