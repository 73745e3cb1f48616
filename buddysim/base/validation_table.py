"""The one table of all comparisons: with papers, with real GPUs, with other simulators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from buddysim.base.csvfile import csv_text
from buddysim.base.errors import BuddysimError
from buddysim.base.textfile import csv_rows, read_text

FILE = "validation.csv"
COLUMNS = (
    "comparison", "machine", "subject", "quantity", "unit", "simulated", "reference", "reference_kind",
    "error_fraction", "tolerance_fraction", "status", "note", "page",
)  # fmt: skip
LARGEST_FILE = 2**24

Rows = Iterable[Sequence[object]]


def merged(existing: Path, page: str, rows_by_comparison: Mapping[str, Rows]) -> str:
    """Return the table with the new rows of some comparisons; all other rows stay.

    Parameters
    ----------
    existing : the table's file, which may not exist
    page : the document, without its ending, that shows these comparisons
    rows_by_comparison : by comparison, cells for all of `COLUMNS` but the last

    Raises
    ------
    BuddysimError
        where the file can't be read, or is not such a table
    """
    stored = _rows(existing)
    fresh = [[*map(_text, row), page] for rows in rows_by_comparison.values() for row in rows]
    unchanged = [row for row in stored if row[-1] != page or row[0] not in rows_by_comparison]
    order = {key: n for n, key in enumerate(dict.fromkeys((row[-1], row[0]) for row in stored + fresh))}
    rows = sorted(unchanged + fresh, key=lambda row: (row[-1], order[row[-1], row[0]]))
    return csv_text([COLUMNS, *rows])


def page_rows(existing: Path, page: str) -> list[dict[str, str]]:
    """Return the rows that a page shows, each by column.

    Raises
    ------
    BuddysimError
        where the file can't be read, or is not such a table
    """
    return [dict(zip(COLUMNS, row, strict=True)) for row in _rows(existing) if row[-1] == page]


def _rows(existing: Path) -> list[list[str]]:
    if not existing.exists():
        return []
    text = read_text(existing, "table of comparisons", LARGEST_FILE)
    head, *rows = [cells for _, cells in csv_rows(text, str(existing))] or [[]]
    if tuple(head) != COLUMNS or any(len(row) != len(COLUMNS) for row in rows):
        raise BuddysimError(f"{existing}: not a table of comparisons: expected the columns {', '.join(COLUMNS)}")
    return rows


def _text(cell: object) -> str:
    return "" if cell is None else str(cell)
