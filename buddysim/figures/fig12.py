"""Buddy Compression, Fig. 12: Unified Memory with oversubscription."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.figures.shared import study_style
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.buddy.performance_numbers import MANAGED, MANAGED_GBS, OVERSUBSCRIBED, managed_slowdowns
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Buddy Compression, Fig. 12: slowdown of Unified Memory, pinned host memory, and Buddy at 50 GB/s"
ORDER = 114
STUDY = True
OPTIONS = study_style.OPTIONS
WIDTH_IN = study_style.WIDTH_IN
_LINES = ("o-", "s--", "^-.")


def data(source: ResultSource) -> FigureTable:
    """Return a row for each program and oversubscription."""
    rows = []
    for name in MANAGED:
        if name in source.buddy.names():
            slowdowns = managed_slowdowns(source.buddy, name)
            for oversubscription in OVERSUBSCRIBED:
                rows.append(
                    (
                        name,
                        oversubscription,
                        slowdowns[f"um {oversubscription:.0%}"],
                        slowdowns["host"],
                        slowdowns["buddy"],
                    )
                )
    if not any(value is not None for row in rows for value in row[2:]):
        rows = []
    columns = (
        "workload",
        "oversubscription_fraction",
        "unified_memory_slowdown",
        "pinned_host_slowdown",
        "buddy_slowdown",
    )
    return study_style.make_table(source.buddy, "fig12", columns, rows)


def draw(table: FigureTable) -> Figure:
    figure, axes = study_style.make_figure(TITLE, height=2.4)
    for n, name in enumerate(dict.fromkeys(row["workload"] for row in table.records())):
        rows, shade = table.rows_with(workload=name), str(0.25 * n)
        x = [100 * row["oversubscription_fraction"] for row in rows]
        axes.plot(
            x, [row["unified_memory_slowdown"] for row in rows], _LINES[n], color=shade, markersize=2.5, linewidth=0.9,
            label=f"{study_style.paper_labels([name])[0]}: um",
        )  # fmt: skip
        if rows[0]["pinned_host_slowdown"] is not None:
            axes.axhline(rows[0]["pinned_host_slowdown"], color=shade, linewidth=0.8, linestyle=":")
        if rows[0]["buddy_slowdown"] is not None:
            axes.plot([x[-1]], [rows[0]["buddy_slowdown"]], "*", color=shade, markersize=5)
    axes.axhline(reported_value("buddy-um-buddy"), color=style.REPORTED, linewidth=0.8, linestyle="--")
    axes.axhline(1, color=style.INK, linewidth=0.5, linestyle="--")
    axes.set_yscale("log")
    axes.set_xlabel("oversubscription, %")
    axes.set_ylabel("slowdown vs unlimited memory")
    study_style.add_legend(axes, 2)
    study_style.add_caption(
        figure, table,
        f"A model of the driver: the paper measured a POWER9 with a V100. Link {MANAGED_GBS} GB/s; dotted: everything "
        f"pinned in host memory; stars: Buddy Compression at 50 GB/s; red: the paper's, at most "
        f"{reported_value('buddy-um-buddy'):g}. Its text names no programs; these are three of SPEC ACCEL's.",
    )  # fmt: skip
    return figure
