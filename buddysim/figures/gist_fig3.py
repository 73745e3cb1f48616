"""Gist, Fig. 3: stashed feature maps by the layers around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.gist.mfr import bytes_by_category
from buddysim.papers.gist.paper_networks import NETWORKS, run
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Gist, Fig. 3: stashed feature maps by the layers around them"
ORDER = 303


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network; percentage of its stashed feature maps by category."""
    rows = []
    for label in NETWORKS:
        sums = bytes_by_category(run(label, "gist-base", "investigation"))
        total = sum(sums.values())
        rows.append({"network": label, "percent": {name: 100 * amount / total for name, amount in sums.items()}})
    return rows


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE)
    names, labels = (
        {"relu-pool": "ReLU-Pool", "relu-conv": "ReLU/Pool-Conv", "others": "others"},
        [r["network"] for r in rows],
    )
    style.draw_stacked_bars(
        axes, labels, {label: [row["percent"][name] for row in rows] for name, label in names.items()}
    )
    vgg16 = labels.index("VGG16")
    style.mark_reported_values(
        axes,
        [vgg16, vgg16],
        [reported_value("relu-pool-vgg16"), reported_value("relu-vgg16")],
        "paper: ReLU-Pool, all ReLU",
    )
    axes.set_ylabel("percentage of stashed feature maps")
    style.add_legend(axes, 4)
    return figure
