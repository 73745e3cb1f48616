"""vDNN, Fig. 1: network-wide memory, and the largest fraction of it that a layer's own step uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.reported_values import reported_value
from buddysim.papers.vdnn.baseline import largest_step_fraction
from buddysim.papers.vdnn.paper_networks import DEEP, GIB, SIX
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "vDNN, Fig. 1: network-wide memory and the largest percentage that a layer uses"
ORDER = 101

REPORTED_GIB = {"AlexNet (128)": "total-alexnet", "VGG-16 (128)": "total-vgg16-128", "VGG-16 (256)": "total-vgg16-256"}


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network."""
    rows = []
    for label, name, batch in (*SIX, *DEEP):
        result = source.training.result(name, batch, "baseline-p")
        gib = result["memory.baseline_bytes"] / GIB
        rows.append({"network": label, "gib": gib, "most_used": largest_step_fraction(result), "fits": result["fits"]})
    return rows


def draw(rows: list[dict[str, Any]]) -> Figure:
    """Two panels, one scale each: the memory, and the percentage."""
    figure, (memory, percent_axes) = style.make_figure(TITLE, 2, 1, height=6.4, sharex=True)
    labels = [row["network"] for row in rows]
    memory.bar(labels, [row["gib"] for row in rows], 0.6, color=style.SERIES[0], label="network-wide (baseline-p)")
    positions = [labels.index(label) for label in REPORTED_GIB]
    style.mark_reported_values(memory, positions, [reported_value(id) for id in REPORTED_GIB.values()])
    memory.axhline(12, color=style.PALE, linewidth=0.8, linestyle=":")
    memory.set_ylabel("memory, GiB (dotted: Titan X)")
    style.add_legend(memory, 2)
    percent_axes.bar(
        labels, [100 * row["most_used"] for row in rows], 0.6, color=style.SERIES[2], label="largest layer"
    )
    low, high = reported_value("unused")
    percent_axes.axhspan(
        100 - high, 100 - low, color=style.REPORTED, alpha=0.1, label="paper: 21 to 47 % (Fig. 1's networks)"
    )
    percent_axes.set_ylim(0, 100)
    percent_axes.set_ylabel("memory of the largest layer, %")
    style.rotate_group_labels(percent_axes, 8)
    style.add_legend(percent_axes, 2)
    return figure
