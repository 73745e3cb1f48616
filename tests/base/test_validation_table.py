"""The table of all comparisons: a comparison replaces its own rows, and all others stay."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.base.validation_table import COLUMNS, FILE, merged

WIDTH = len(COLUMNS) - 1


def row(comparison: str, quantity: str) -> list[object]:
    return [comparison, None, "", quantity, *[""] * (WIDTH - 4)]


def written(path: Path) -> list[tuple[str, str, str]]:
    with path.open(newline="") as file:
        return [(r["page"], r["comparison"], r["quantity"]) for r in csv.DictReader(file)]


def test_comparison_replaces_its_rows_and_no_others(tmp_path: Path) -> None:
    table = tmp_path / FILE
    table.write_text(merged(table, "validation", {"curves": [row("curves", "a"), row("curves", "b")], "um": []}))
    table.write_text(merged(table, "papers", {"curves": [row("curves", "of a paper, with a comma")]}))
    table.write_text(merged(table, "validation", {"um": [row("um", "c")], "curves": [row("curves", "d")]}))
    expected = [
        ("papers", "curves", "of a paper, with a comma"),
        ("validation", "curves", "d"),
        ("validation", "um", "c"),
    ]
    assert written(table) == expected
    again = table.read_text()
    assert merged(table, "validation", {"um": [row("um", "c")]}) == again


@pytest.mark.parametrize("text", ["", "a,b\n", ",".join(COLUMNS) + "\n1,2\n", '"'])
def test_other_file_is_refused_and_unchanged(tmp_path: Path, text: str) -> None:
    table = tmp_path / FILE
    table.write_text(text)
    with pytest.raises(BuddysimError, match=FILE):
        merged(table, "validation", {})
    assert table.read_text() == text
