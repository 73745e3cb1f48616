"""Gist, Fig. 17: dynamic allocation, encodings, no decoded copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.gist.paper_networks import NETWORKS, lossy, mfr
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Gist, Fig. 17: dynamic allocation, encodings, no decoded copies"
ORDER = 317


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network; MFR against CNTK's baseline."""
    return [
        {
            "network": label,
            "dynamic": mfr(label, "gist-base", "dynamic"),
            "and lossless": mfr(label, "gist-lossless", "dynamic"),
            "and lossy": mfr(label, lossy(label), "dynamic"),
            "and no copies": mfr(label, lossy(label), "dynamic", decoded=False),
        }
        for label in NETWORKS
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(f"{TITLE} (62 % zeros)")
    labels = [row["network"] for row in rows]
    kinds = [kind for kind in rows[0] if kind != "network"]
    style.draw_grouped_bars(axes, labels, {kind: [row[kind] for row in rows] for kind in kinds}, "{:.1f}")
    for id, text in (("dynamic-average", "dynamic"), ("dynamic-lossless", "lossless"), ("dynamic-lossy", "lossy")):
        style.draw_reported_line(axes, reported_value(id), f"paper: {text}, average")
    style.mark_reported_values(axes, [labels.index("AlexNet") + 0.3], [reported_value("software-alexnet")])
    axes.set_ylabel("memory footprint ratio (MFR)")
    style.add_legend(axes, 5)
    return figure
