"""Charts of rows: one for each kind of thing that a report shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from buddysim.report.web.page import graph_objects, shown

Row = Mapping[str, Any]
#: Dark to light, so that they stay apart in grey.
_COLOURS = ("#16202b", "#c55a11", "#4a8bc9", "#f4b183", "#4f7942", "#9dc3e6", "#5b4a8a", "#b7d3a8")


def bars(title: str, rows: Sequence[Row], x: str, y: str, by: str | None = None) -> Any:
    """Bars of a column for each value of another, side by side by a third; hover shows the whole row."""
    return _figure(title, rows, x, y, by, "Bar")


def lines(title: str, rows: Sequence[Row], x: str, y: str, by: str | None = None) -> Any:
    """Lines of a column against another, one for each value of a third; hover shows the whole row."""
    return _figure(title, rows, x, y, by, "Scatter")


def _figure(title: str, rows: Sequence[Row], x: str, y: str, by: str | None, kind: str) -> Any:
    plotly = graph_objects()
    figure = plotly.Figure()
    known = [row for row in rows if row.get(y) is not None]
    for number, series in enumerate(dict.fromkeys(row.get(by) if by else None for row in known)):
        selected_rows = [row for row in known if by is None or row.get(by) == series]
        more: dict[str, Any] = {"marker": {"color": _COLOURS[number % len(_COLOURS)]}}
        if kind == "Scatter":
            more |= {"mode": "lines+markers"}
        figure.add_trace(
            getattr(plotly, kind)(
                x=[_value(row.get(x)) for row in selected_rows],
                y=[row[y] for row in selected_rows],
                name="" if by is None else f"{shown(by)} {shown(series)}",
                hovertext=[
                    "<br>".join(f"{shown(key)}: {shown(value)}" for key, value in row.items()) for row in selected_rows
                ],
                hoverinfo="text",
                showlegend=by is not None,
                **more,
            )
        )
    figure.update_layout(
        title=shown(title),
        xaxis_title=shown(x),
        yaxis_title=shown(y),
        height=360,
        margin={"l": 60, "r": 20, "t": 50, "b": 60},
        template="plotly_white",
    )
    return figure


def _hover(row: Row) -> str:
    return "<br>".join(f"{shown(key)}: {shown(value)}" for key, value in row.items())


def _value(value: Any) -> Any:
    return shown(value) if isinstance(value, str) else value
