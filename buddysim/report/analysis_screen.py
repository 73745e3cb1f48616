"""An analysis on the screen: its table with units in the columns' heads, its notes."""

from __future__ import annotations

from collections.abc import Callable

from buddysim.analyses import AnalysisResult
from buddysim.analyses.analysis_result import Value
from buddysim.report.quantities import format_bytes, format_percent, format_time
from buddysim.report.screen import NOT_APPLICABLE, Column, Part, ScreenTable, make_printable

#: How a number is written, and what its column is called, by the end of its name.
_UNITS: dict[str, Callable[[float], str]] = {"_fraction": format_percent, "_bytes": format_bytes, "_ps": format_time}
#: Endings that say no more than the unit that stands in every cell; a share's name is that of a share.
_SHOWN_UNITS = ("_bytes", "_ps")
_CLASS = "fraction_"


def analysis_parts(result: AnalysisResult) -> list[Part]:
    """The screen of one analysis."""
    shown = result.shown or result
    columns = [
        Column(_heading(name), left=any(isinstance(value, str) for value in shown.column(name)))
        for name in shown.columns
    ]
    rows = [[_text(name, value) for name, value in zip(shown.columns, row, strict=True)] for row in shown.rows]
    names = next((n for n, column in enumerate(columns) if not column.left), len(columns))
    return [f"{result.title}:", ScreenTable(columns, rows, max(names, 1)), *result.notes]


def _heading(name: str) -> str:
    if name.startswith(_CLASS):
        return name.removeprefix(_CLASS).replace("B", " B")
    for ending in _SHOWN_UNITS:
        name = name.removesuffix(ending)
    return name.replace("_", "\n", 1).replace("_", " ")


def _text(name: str, value: Value) -> str:
    if value is None:
        return NOT_APPLICABLE
    if isinstance(value, str):
        return make_printable(value)
    for ending, text in _UNITS.items():
        if name.endswith(ending):
            return text(value)
    if name.startswith(_CLASS):
        return format_percent(value)
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}"
