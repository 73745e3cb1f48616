"""Rows of papers in the table of all comparisons, in the folder of the document that shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from buddysim.base import validation_table
from buddysim.base.output import write_text


def table_text(document: Path, rows: Iterable[Sequence[object]]) -> str:
    """The table with a document's numbers.

    Parameters
    ----------
    document : the table is in its folder
    rows : `Comparison.row` of each number
    """
    by_paper: dict[str, list[Sequence[object]]] = {}
    for row in rows:
        by_paper.setdefault(str(row[0]), []).append(row)
    return validation_table.merged(document.parent / validation_table.FILE, document.stem, by_paper)


def write_both(document: Path, text: str, rows: Iterable[Sequence[object]]) -> None:
    """Writes a document, and its numbers to the table."""
    table = table_text(document, rows)
    write_text(document, text)
    write_text(document.parent / validation_table.FILE, table)
