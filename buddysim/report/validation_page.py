"""Pages of comparisons, made from the table of all comparisons: texts, and a table for each comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from buddysim.base.markdown import wrap_markdown
from buddysim.base.validation_table import page_rows
from buddysim.validation import REGISTRY
from buddysim.validation.comparison import FAIL, PASS

TITLES = {
    "accelsim": "Accel-Sim",
    "dram": "Device memory: DRAMsim3",
    "hardware": "Real GPUs: curves and kernels",
    "llm": "Memory of training language models",
    "unified-memory": "Unified Memory on a GTX 1080 Ti",
}
"""Title of each page; of other pages, their name."""
_HEAD = """# {title}

Made from [validation.csv](validation.csv), which `python -m buddysim validate -o docs/validation` writes. Rules:
[method](method.md). Bold: not within the tolerance.
"""

Row = Mapping[str, str]


def comparison_page(table: Path, page: str) -> str:
    """Return a page: of each of its comparisons what it says, and every quantity.

    Parameters
    ----------
    table : file of the table of all comparisons
    page : name of the page, without its ending

    Raises
    ------
    BuddysimError
        where the table can't be read
    """
    rows = page_rows(table, page)
    blocks = [_HEAD.format(title=TITLES.get(page, page)).strip()]
    for name, comparison in REGISTRY.items():
        own = [row for row in rows if row["comparison"] == name]
        if own:
            head: str = getattr(comparison, "PAGE_HEAD", f"## {name}")
            notes: str = getattr(comparison, "page_notes", str)()
            blocks += [head.strip(), "\n".join(quantity_lines(own)), notes.strip()]
    return wrap_markdown("\n\n".join(block for block in blocks if block)).rstrip() + "\n"


def quantity_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how many quantities are within their tolerance, and a table for each machine."""
    limited = [row["status"] for row in rows if row["status"] in (PASS, FAIL)]
    yield f"{limited.count(PASS)} of {len(limited)} quantities are within tolerance."
    for machine, group in groupby(rows, lambda row: row["machine"]):
        yield ""
        yield f"| `{machine}` | quantity | simulated | reference | error | tolerance | note |"
        yield "|---|---|--:|--:|--:|--:|---|"
        for row in group:
            yield f"| {' | '.join(cell.replace('|', '/') for cell in _cells(row))} |"


def _cells(row: Row) -> Sequence[str]:
    error = percent(row["error_fraction"])
    return (
        row["subject"], row["quantity"], amount(row["simulated"], row["unit"]), amount(row["reference"], row["unit"]),
        f"**{error}**" if row["status"] == FAIL else error, percent(row["tolerance_fraction"]), row["note"] or "-",
    )  # fmt: skip


def amount(value: str, unit: str) -> str:
    """Return a value of the table with four digits and its unit; values that are no number stay as they are."""
    try:
        number = float(value)
    except ValueError:
        return f"{value} {unit}".strip() if value else "-"
    text = f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
    return f"{text} {unit}".strip()


def percent(fraction: str) -> str:
    """Return a fraction of the table in percent."""
    return f"{float(fraction):.1%}".replace("%", " %") if fraction else "-"
