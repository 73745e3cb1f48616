"""What an analysis finds: a table of plain values, and what to show of it."""

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
    """The trace has values, but not those that this analysis needs: asked for all analyses, it is left out."""


@dataclass(frozen=True)
class AnalysisResult:
    """A table.

    Attributes
    ----------
    title : what it is, in a line
    columns : their names, each with the unit of its numbers behind it where it has one: ``stored_bytes``. Shares are
        numbers from 0 to 1
    rows : a value for each column; None where there is none (the ratio of zeros alone)
    notes : what is measured, modelled or assumed
    shown : the rows for a screen, where these are fewer than `rows`, and their columns; None: all
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Value, ...]]
    notes: tuple[str, ...] = ()
    shown: AnalysisResult | None = None

    def records(self) -> list[Mapping[str, Value]]:
        """The rows as mappings of column and value."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def column(self, name: str) -> list[Any]:
        """The values of a column."""
        at = self.columns.index(name)
        return [row[at] for row in self.rows]

    def to_dataframe(self) -> pandas.DataFrame:
        """The rows as a frame (needs pandas)."""
        return frame([dict(row) for row in self.records()], None)
