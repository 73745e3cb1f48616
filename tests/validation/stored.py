"""Rows of the table of all comparisons, as stored in docs/ and as a comparison gives them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from buddysim.validation import ComparedQuantity

TABLE = Path(__file__).parents[2] / "docs" / "validation" / "validation.csv"


def stored_rows(comparison: str) -> list[list[str]]:
    """Return the stored rows of a comparison, as text and without the page."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [row[:-1] for row in csv.reader(file) if row[0] == comparison]


def table_rows(quantities: Iterable[ComparedQuantity]) -> list[Sequence[str]]:
    """Return rows of quantities as the table stores them."""
    return [["" if cell is None else str(cell) for cell in quantity.row] for quantity in quantities]
