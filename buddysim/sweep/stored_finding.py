"""What a stored analysis holds: a table, its title and notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.schema import Schema, checked

Cell = str | int | float | bool | None


class StoredFinding(Schema):
    """Fields of a stored analysis.

    Attributes
    ----------
    title, columns, rows, notes : of `AnalysisResult`
    provenance : where the finding comes from
    """

    title: str
    columns: list[str]
    rows: list[list[Cell]]
    notes: list[str]
    provenance: dict[str, Any]


def check_finding(content: Mapping[str, Any], where: str) -> None:
    """Refuse what isn't a stored analysis, or has rows of another length.

    Raises
    ------
    BuddysimError
        begins with `where`, names the field and what it should be
    """
    finding = checked(StoredFinding, content, where)
    for index, row in enumerate(finding.rows):
        if len(row) != len(finding.columns):
            raise BuddysimError(f"{where}: rows.{index}: expected {len(finding.columns)} values, got {len(row)}")
