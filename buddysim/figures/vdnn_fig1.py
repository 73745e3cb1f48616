"""vDNN, Fig. 1: network-wide memory, and the largest share of it that a layer's own step uses."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from buddysim.figures import style
from buddysim.figures.paper import DEEP, GIB, SIX, value
from buddysim.figures.runs import Runs

TITLE = "vDNN, Fig. 1: network-wide memory and how much of it a layer uses at most"

STATED_GIB = {"AlexNet (128)": "total-alexnet", "VGG-16 (128)": "total-vgg16-128", "VGG-16 (256)": "total-vgg16-256"}


def most_used(result: Any) -> float:
    """The largest share of the network-wide memory that a layer's forward step uses: X, Y, weights, workspace."""
    return max(map(step_bytes, result["per_layer"])) / result["memory.baseline_bytes"]


def step_bytes(row: Any) -> int:
    """What a layer's forward step touches."""
    maps = row["output_bytes"] + (0 if row["in_place"] else row["input_bytes"])
    return int(maps + row["weights_bytes"] + row["forward_workspace_bytes"])


def data(runs: Runs) -> list[dict[str, Any]]:
    """A row for each network."""
    rows = []
    for label, name, batch in (*SIX, *DEEP):
        result = runs.one(name, batch, "base-p")
        gib = result["memory.baseline_bytes"] / GIB
        rows.append({"network": label, "gib": gib, "most_used": most_used(result), "fits": result["fits"]})
    return rows


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.figure(TITLE)
    labels = [row["network"] for row in rows]
    axes.bar(labels, [row["gib"] for row in rows], 0.6, color=style.SERIES[0], label="network-wide, base-p")
    places = [labels.index(label) for label in STATED_GIB]
    style.stated(axes, places, [value(id) for id in STATED_GIB.values()])
    axes.axhline(12, color=style.PALE, linewidth=0.8, linestyle=":")
    axes.set_ylabel("GiB (dotted: a Titan X)")
    share = axes.twinx()
    share.plot(labels, [100 * row["most_used"] for row in rows], "o", color=style.SERIES[2], label="used at most")
    low, high = value("unused")
    share.axhspan(100 - high, 100 - low, color=style.STATED, alpha=0.1, label="paper: 21 to 47 % (Fig. 1's networks)")
    share.set_ylim(0, 100)
    share.set_ylabel("% of it used by a layer at most")
    share.tick_params(labelsize=8)
    style.turned(axes, 8)
    style.legend(axes, 2, loc="lower left", bbox_to_anchor=(0, 1))
    style.legend(share, 2)
    return figure
