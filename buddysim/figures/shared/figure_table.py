"""Numbers of a figure as a table: plotted, and written to the CSV file next to the figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FigureTable:
    """Numbers of a figure.

    Attributes
    ----------
    columns : names of columns; fractions are from 0 to 1
    rows : a value for each column; None: no value
    missing_text : traces and results that the store lacks, a line; empty: none
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    missing_text: str = ""

    def csv_rows(self) -> list[list[Any]]:
        """Return a heading and the rows."""
        return [list(self.columns), *([["" if value is None else value for value in row] for row in self.rows])]

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as mappings of column and value."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def rows_with(self, **requested: Any) -> list[dict[str, Any]]:
        """Return the rows with the requested values."""
        return [row for row in self.records() if all(row[name] == value for name, value in requested.items())]
