"""Gist, Fig. 16: larger minibatches of deep residual networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.gist.depth_numbers import DEPTHS, SCHEMES, largest, speedup_percent
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Gist, Fig. 16: speedup by larger minibatches of deep residual networks"
ORDER = 316


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each depth; largest minibatches, speedup in per cent."""
    return [
        {
            "network": f"ResNet-{depth}",
            "batches": [largest(depth, scheme).batch for scheme in SCHEMES],
            "speedup": speedup_percent(depth),
        }
        for depth in DEPTHS
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(f"{TITLE}, CIFAR-10, 12 GiB")
    labels = ["{}\n{:,} -> {:,} samples".format(row["network"], *row["batches"]) for row in rows]
    style.draw_grouped_bars(axes, labels, {"speedup": [row["speedup"] for row in rows]}, "{:.1f}")
    style.mark_reported_values(axes, [len(rows) - 1], [reported_value("resnet1202-speedup")])
    axes.axhline(0, color=style.PALE, linewidth=0.8)
    axes.set_ylabel("speedup per sample, %")
    style.add_legend(axes, 2)
    return figure
