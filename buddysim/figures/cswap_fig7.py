"""CSWAP, Fig. 7: speedup of CSWAP over static compression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cswap.iterations import SOURCES, training_text
from buddysim.papers.cswap.paper_networks import NETWORKS
from buddysim.papers.cswap.performance_numbers import faster_than_static
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "CSWAP, Fig. 7: time that CSWAP saves relative to static compression"
ORDER = 407

PANELS = {"V100": ("6a", "6c"), "2080 Ti": ("6b", "6d")}


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each machine, source of codec times, network and data set."""
    return [
        {"machine": machine, "codec_times": name, "case": key, "percent": value}
        for machine, panels in PANELS.items()
        for name in SOURCES
        for key, value in faster_than_static(source.training, panels, name).items()
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE, 1, 2, width=13, sharey=True)
    for panel, (machine, panels) in zip(axes, PANELS.items(), strict=True):
        series = {}
        for name in SOURCES:
            for part, dataset in zip(panels, ("CIFAR-10", "ImageNet"), strict=True):
                known = {r["case"]: r["percent"] for r in rows if (r["machine"], r["codec_times"]) == (machine, name)}
                series[f"{dataset}, {name}"] = [known.get(f"{label} {part}") for label in NETWORKS]
        style.draw_grouped_bars(panel, list(NETWORKS), series)
        panel.set_title(machine, fontsize=9, loc="left")
    axes[0].set_ylabel("time saved, %")
    style.add_legend(axes[1], 2)
    style.add_caption(axes[0], f"{training_text()}; simulated or the paper's codec times.")
    return figure
