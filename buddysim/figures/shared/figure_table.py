"""A figure's numbers as a table: what is drawn, and what the CSV file beside the picture has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FigureTable:
    """Numbers of a figure.

    Attributes
    ----------
    columns : their names; shares are from 0 to 1
    rows : a value for each column; None where there is none
    missing_text : what the store doesn't have of it, a line; empty where it has all
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    missing_text: str = ""

    def csv_rows(self) -> list[list[Any]]:
        """A heading and the rows."""
        return [list(self.columns), *([["" if value is None else value for value in row] for row in self.rows])]

    def records(self) -> list[dict[str, Any]]:
        """The rows as mappings of column and value."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def rows_with(self, **requested: Any) -> list[dict[str, Any]]:
        """The rows that have some values."""
        return [row for row in self.records() if all(row[name] == value for name, value in requested.items())]
