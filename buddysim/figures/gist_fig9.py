"""Gist, Fig. 9: slowdown of an iteration with encodings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.gist.paper_networks import NETWORKS, slowdown_percent
from buddysim.papers.gist.paper_networks import lossy as with_format
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Gist, Fig. 9: slowdown of an iteration with encodings"
ORDER = 309


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network; slowdown in per cent."""
    return [
        {
            "network": label,
            "lossless": slowdown_percent(label, "gist-lossless"),
            "lossy": slowdown_percent(label, with_format(label)),
        }
        for label in NETWORKS
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(f"{TITLE}\nencodings as fast as their bytes move at 336 GB/s")
    series = {kind: [row[kind] for row in rows] for kind in ("lossless", "lossy")}
    style.draw_grouped_bars(axes, [row["network"] for row in rows], series, "{:.1f}")
    style.draw_reported_line(axes, reported_value("overhead-lossless"), "paper: lossless, average")
    style.draw_reported_line(axes, reported_value("overhead-vgg16"), "paper: lossy, VGG16")
    axes.axhline(0, color=style.PALE, linewidth=0.8)
    axes.set_ylabel("slowdown, %")
    style.add_legend(axes, 2)
    return figure
