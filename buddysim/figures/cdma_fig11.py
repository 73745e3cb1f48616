"""cDMA, Fig. 11: average and largest ratio by algorithm and layout."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from buddysim.figures import density, style
from buddysim.figures.paper import value
from buddysim.figures.runs import Runs
from buddysim.training.contents.measured import measured
from buddysim.training.schemes.cdma_study import NETWORKS, figure_11

TITLE = "cDMA, Fig. 11: ratios by algorithm and layout (bars: average by size; dashes: largest of a layer)"

LABELS = {"rle": "RL", "zvc": "ZV", "zlib": "ZL"}
LAYOUTS = ("NCHW", "NHWC", "CHWN")


def data(runs: Runs) -> list[dict[str, Any]]:
    """A row for each network, layout and algorithm; masks counted."""
    return [
        {
            "network": label,
            "algorithm": found.codec.algorithm,
            "layout": found.codec.layout,
            "average": found.average,
            "largest": found.largest,
        }
        for label, ratios in figure_11(measured(None)).items()
        for found in ratios
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.figure(
        f"{TITLE}\n{density.about(density.measurement())}, masks counted", 1, len(LAYOUTS), width=13, sharey=True
    )
    of = {(row["network"], row["layout"], row["algorithm"]): row for row in rows}
    networks = list(NETWORKS)
    for one, layout in zip(axes, LAYOUTS, strict=True):
        style.grouped(
            one,
            networks,
            {shown: [of[n, layout, name]["average"] for n in networks] for name, shown in LABELS.items()},
        )
        for place, name in enumerate(LABELS):
            spots = [x + (place - 1) * 0.8 / 3 for x in range(len(networks))]
            one.plot(spots, [of[n, layout, name]["largest"] for n in networks], "_", color=style.INK, ms=9)
        one.set_yscale("log", base=2)
        one.set_title(layout, fontsize=9, loc="left")
        style.stated_line(one, value("zvc-average"), "paper: ZV on average 2.6")
        style.turned(one, 8)
    style.stated_line(axes[0], value("zvc-largest"), "paper: ZV at most 13.8")
    axes[0].set_ylabel("ratio")
    style.legend(axes[0], 3)
    return figure
