"""Numbers of papers, stored for the page that shows them: rows of the table of all comparisons, figures of its text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from buddysim.base import validation_table
from buddysim.base.output import write_text


def write_comparison(folder: Path, page: str, rows: Iterable[Sequence[object]], figures: Mapping[str, object]) -> None:
    """Write a page's rows to the table of a folder, and what else its text has to PAGE.json.

    Parameters
    ----------
    folder : of the table, which may not exist
    page : name of the page, without its ending
    rows : `PaperComparison.row` of each number
    figures : by name
    """
    by_paper: dict[str, list[Sequence[object]]] = {}
    for row in rows:
        by_paper.setdefault(str(row[0]), []).append(row)
    table = validation_table.merged(folder / validation_table.FILE, page, by_paper)
    write_text(folder / f"{page}.json", json.dumps(figures, indent=1) + "\n")
    write_text(folder / validation_table.FILE, table)
