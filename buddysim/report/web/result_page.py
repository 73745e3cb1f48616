"""The report of one saved result: what `run --json` or `train --json` wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.report.web import charts
from buddysim.report.web.page import Page

Results = Mapping[str, Mapping[str, Any]]
_PARTS = {
    "per_kernel": ("kernels", "launch_index", "time_ps"),
    "per_allocation": ("allocations", "name", "bytes"),
    "per_layer": ("layers", "name", "forward_ms"),
}


def result_page(results: Results, source: str) -> Page:
    """The page of the schemes of a result.

    Parameters
    ----------
    results : by scheme, as a command's ``--json`` writes them
    source : the file's name
    """
    page = Page(f"buddysim: {source}")
    first = next(iter(results.values()))
    about = first.get("provenance", {})
    facts = [f"{key} {about[key]}" for key in ("trace", "network", "machine", "batch") if key in about]
    page.paragraph(", ".join(facts) or source)
    time = "time_ps" if "time_ps" in first else "time_ms"
    rows = [{"scheme": scheme, **_flat(result)} for scheme, result in results.items()]
    page.chart(charts.bars(f"{time} by scheme", rows, "scheme", time))
    page.heading("Schemes")
    page.table(rows, _columns(rows))
    page.heading("Parts")
    for scheme, result in results.items():
        for key, (title, x, y) in _PARTS.items():
            parts = result.get(key)
            if parts:
                page.open_part(f"{scheme}: {len(parts):,} {title}")
                flat = [_flat(part) for part in parts]
                if y in flat[0]:
                    page.chart(charts.bars(f"{scheme}: {y} of {title}", flat[:1000], x if x in flat[0] else "name", y))
                page.table(flat, _columns(flat))
                page.close_part()
    page.heading("Assumptions")
    page.table(
        [{"scheme": scheme, "subject": subject, "assumption": text} for scheme, subject, text in _assumed(results)],
        ("scheme", "subject", "assumption"),
    )
    return page


def _assumed(results: Results) -> list[tuple[str, str, str]]:
    rows = []
    for scheme, result in results.items():
        assumptions = result.get("provenance", {}).get("assumptions", {})
        if isinstance(assumptions, Mapping):
            rows += [(scheme, str(subject), str(text)) for subject, text in assumptions.items()]
    return rows


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if isinstance(value, str | int | float | None)}


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    """The columns that any row has a value of."""
    names = dict.fromkeys(key for row in rows for key in row)
    return [name for name in names if any(row.get(name) is not None for row in rows)]
