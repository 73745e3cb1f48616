"""CSWAP, Fig. 11: correct decisions."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cswap.iterations import SOURCES, accuracy_percent, training_text
from buddysim.papers.cswap.paper_networks import CASES, NETWORKS
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "CSWAP, Fig. 11: decisions that agree with the full simulation of both choices (V100, ImageNet)"
ORDER = 411


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network and source of codec times."""
    return [
        {"network": label, "codec_times": name, "percent": accuracy_percent(CASES[2], label, name)}
        for label in NETWORKS
        for name in SOURCES
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE)
    series: dict[str, list[float | None]] = {
        name: [row["percent"] for row in rows if row["codec_times"] == name] for name in SOURCES
    }
    means = {name: fmean(row["percent"] for row in rows if row["codec_times"] == name) for name in SOURCES}
    style.draw_grouped_bars(
        axes, list(NETWORKS), {f"{n}, mean {means[n]:.1f}": values for n, values in series.items()}, "{:.0f}"
    )
    axes.set_ylabel("correct decisions, %")
    axes.set_ylim(0, 108)
    style.draw_reported_line(axes, reported_value("11-accuracy"), "paper: average")
    style.add_legend(axes, 2)
    style.add_caption(axes, f"{training_text()}. Each decision flipped, the others fixed.")
    return figure
