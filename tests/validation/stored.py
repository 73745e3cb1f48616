"""The table of all comparisons as it is stored in docs/."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from buddysim.validation import ComparedQuantity

TABLE = Path(__file__).parents[2] / "docs" / "validation.csv"


def stored(comparison: str) -> list[list[str]]:
    """The rows of a comparison, as text."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [row[:-1] for row in csv.reader(file) if row[0] == comparison]


def fresh(quantities: Iterable[ComparedQuantity]) -> list[Sequence[str]]:
    """Judged quantities as the table has them."""
    return [["" if cell is None else str(cell) for cell in row.row] for row in quantities]
