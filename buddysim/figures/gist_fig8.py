"""Gist, Fig. 8: memory footprint ratio against CNTK's baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.gist.paper_networks import NETWORKS, lossy, mfr
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Gist, Fig. 8: memory footprint ratio over CNTK's baseline"
ORDER = 308


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network; MFR lossless and with its smallest format."""
    return [
        {
            "network": label,
            "format": lossy(label),
            "lossless": mfr(label, "gist-lossless"),
            "lossy": mfr(label, lossy(label)),
        }
        for label in NETWORKS
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(f"{TITLE} (62 % zeros where SSDC is used)")
    labels = [f"{row['network']}\n{row['format'].removeprefix('gist-').upper()}" for row in rows]
    kinds = ("lossless", "lossy")
    style.draw_grouped_bars(axes, labels, {kind: [row[kind] for row in rows] for kind in kinds}, "{:.2f}")
    style.draw_reported_line(axes, reported_value("lossless-average"), "paper: lossless, average")
    style.draw_reported_line(axes, reported_value("lossy-average"), "paper: lossy, average")
    axes.set_ylabel("memory footprint ratio (MFR)")
    style.add_legend(axes, 2)
    return figure
