"""Makes pages of comparisons and of a study from their stored tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from buddysim.base.markdown import wrap_markdown
from buddysim.base.textfile import LARGEST_TABLE, read_csv
from buddysim.base.validation_table import FILE
from buddysim.figures.shared.transformers_page import page_lines
from buddysim.report.validation_page import comparison_page
from tools import validate_accelsim

DOCS = Path(__file__).parents[2] / "docs"
TABLE = DOCS / "validation" / FILE

dram_page = partial(comparison_page, TABLE, "dram")
hardware_page = partial(comparison_page, TABLE, "hardware")
llm_page = partial(comparison_page, TABLE, "llm")
unified_memory_page = partial(comparison_page, TABLE, "unified-memory")


def accelsim_page() -> str:
    """Return docs/validation/accelsim.md: the stored comparison, and two small programs replayed now."""
    programs = wrap_markdown("\n".join(validate_accelsim.lines(validate_accelsim.validate())))
    return f"{comparison_page(TABLE, 'accelsim')}\n{programs.strip()}\n"


def transformers_page() -> str:
    """Return docs/explanation/buddy-transformers.md, from what `plot buddy-transformers` stored."""
    table = read_csv(DOCS / "explanation" / "buddy-transformers.csv", "table", LARGEST_TABLE)
    rows = [{column: value_of(cell) for column, cell in row.items()} for row in table]
    return "\n".join(page_lines(rows)) + "\n"


def value_of(cell: str) -> float | str | None:
    """Return a cell of a table: None if it is empty, a number if it is one."""
    try:
        return float(cell) if cell else None
    except ValueError:
        return cell
