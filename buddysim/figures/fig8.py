"""Buddy Compression, Fig. 8: buddy accesses over an iteration of training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.figures.shared import study_style
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.buddy.target_numbers import ITERATIONS, overflow, policy_value
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Buddy Compression, Fig. 8: overflow over an iteration, with fixed targets"
ORDER = 110
STUDY = True
OPTIONS = study_style.OPTIONS
WIDTH_IN = study_style.WIDTH_IN
_REPORTED = {"squeezenet": "buddy-squeezenet-ratio", "resnet50": "buddy-resnet-ratio"}


def data(source: ResultSource) -> FigureTable:
    """Return a row for each network and snapshot; each snapshot is later in its iteration than the one before."""
    rows = []
    for name in ITERATIONS:
        if name in source.buddy.names():
            ratio = policy_value(source.buddy, name, "final", "ratio")
            for number, (launches, overflow_fraction) in enumerate(overflow(source.buddy, name) or ()):
                rows.append((name, number, launches, overflow_fraction, ratio, reported_value(_REPORTED[name])))
    columns = ("workload", "snapshot", "launches", "overflow_fraction", "ratio", "paper_ratio")
    return study_style.make_table(source.buddy, "fig8", columns, rows)


def draw(table: FigureTable) -> Figure:
    figure, axes = study_style.make_figure(TITLE, height=2.0)
    highest = 1.0
    for name, line, colour in zip(ITERATIONS, ("o-", "s--"), (style.INK, "0.5"), strict=True):
        rows = table.rows_with(workload=name)
        if rows:
            percents = [None if row["overflow_fraction"] is None else 100 * row["overflow_fraction"] for row in rows]
            ratio = "?" if rows[0]["ratio"] is None else f"{rows[0]['ratio']:.2f}"
            label = f"{study_style.paper_labels([name])[0]}, {ratio}x (paper {rows[0]['paper_ratio']:g}x)"
            axes.plot(
                [row["snapshot"] + 1 for row in rows], percents, line, color=colour, label=label, markersize=2.5,
                linewidth=0.9,
            )  # fmt: skip
            highest = max(highest, *(percent for percent in percents if percent is not None))
    axes.set_ylim(0, 1.15 * highest)
    axes.set_ylabel("overflow, % of entries")
    axes.set_xlabel("snapshot of an iteration")
    study_style.add_legend(axes, 1)
    study_style.add_caption(
        figure, table, "Captured data values: entries that overflow final targets.", study_style.INPUTS,
        "The paper's curves could not be read; it says that they stay steady.",
    )  # fmt: skip
    return figure
