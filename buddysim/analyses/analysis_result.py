"""Result of an analysis: a table of plain values, and its rows for a screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.base.stack_frames import frame

if TYPE_CHECKING:
    import pandas

Value = str | int | float | None


class DoesNotApply(BuddysimError):
    """Error: the trace lacks data that this analysis needs; a command that runs all analyses skips it."""


@dataclass(frozen=True)
class AnalysisResult:
    """Table of an analysis.

    Attributes
    ----------
    title : title of the table, one line
    columns : names of columns, with their unit where they have one: ``stored_bytes``. Fractions are from 0 to 1
    rows : a value for each column; None: no value (the ratio of only zeros)
    notes : what is captured, simulated or assumed
    shown : table for a screen, where that has fewer rows; None: this table
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Value, ...]]
    notes: tuple[str, ...] = ()
    shown: AnalysisResult | None = None

    def records(self) -> list[Mapping[str, Value]]:
        """Return the rows as mappings of column and value."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def column(self, name: str) -> list[Any]:
        """Return the values of a column."""
        at = self.columns.index(name)
        return [row[at] for row in self.rows]

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the rows as a data frame (needs pandas)."""
        return frame([dict(row) for row in self.records()], None)
