"""Gist, Fig. 12: accuracy with rounded feature maps, compared with FP32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.gist.format_accuracy import CONDITIONS
from buddysim.plotting import style
from buddysim.training.schemes._gist_accuracy import about, difference

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Gist, Fig. 12: accuracy with rounded feature maps, compared with FP32"
ORDER = 312


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each way of rounding; points against FP32 with half of the 95 % interval."""
    rows = []
    for condition in CONDITIONS[1:]:
        mean, half = difference(condition)
        rows.append({"condition": condition, "points": mean, "half": half})
    return rows


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(f"{TITLE}\n{about()}; five paired seeds, 95 % interval; not the paper's ImageNet")
    positions = range(len(rows))
    axes.bar(positions, [row["points"] for row in rows], 0.6, color=style.SERIES[1])
    points, halves = [row["points"] for row in rows], [row["half"] for row in rows]
    axes.errorbar(positions, points, yerr=halves, fmt="none", ecolor=style.INK, capsize=3)
    axes.set_xticks(positions, [row["condition"].replace("-", "\n") for row in rows])
    axes.axhline(0, color=style.PALE, linewidth=0.8)
    axes.set_ylabel("accuracy vs FP32, points")
    return figure
