"""vDNN, Fig. 14: performance of every policy against the baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.figures.vdnn_fig11 import SCHEMES
from buddysim.papers.reported_values import reported_value
from buddysim.papers.vdnn.paper_networks import SIX
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "vDNN, Fig. 14: performance of the feature layers vs the oracle (*: does not fit)"
ORDER = 114


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network and scheme."""
    return [
        {
            "network": label,
            "scheme": scheme,
            "performance": result["feature_layers.oracle_ms"] / result["feature_layers.time_ms"],
            "fits": result["fits"],
        }
        for label, name, batch in SIX
        for scheme, result in source.training.training_results(name, batch, SCHEMES).items()
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE, width=12)
    networks = list(dict.fromkeys(row["network"] for row in rows))
    cells = {(row["network"], row["scheme"]): row for row in rows}
    series = {label: [cells[n, scheme]["performance"] for n in networks] for scheme, label in SCHEMES.items()}
    style.draw_grouped_bars(axes, networks, series)
    width = 0.8 / len(SCHEMES)
    for x, network in enumerate(networks):
        for n, scheme in enumerate(SCHEMES):
            row = cells[network, scheme]
            if not row["fits"]:
                position = (x + (n - (len(SCHEMES) - 1) / 2) * width, row["performance"])
                axes.annotate("*", position, ha="center", fontsize=9)
    style.draw_reported_line(axes, 1 - reported_value("all-m-loss") / 100, "paper: all(m), average")
    style.draw_reported_line(axes, reported_value("dyn-time") / 100, "paper: dyn, average")
    dyn = networks.index("VGG-16 (256)") + (list(SCHEMES).index("vdnn-dyn") - (len(SCHEMES) - 1) / 2) * width
    all_m = networks.index("VGG-16 (128)") + (list(SCHEMES).index("vdnn-all-m") - (len(SCHEMES) - 1) / 2) * width
    style.mark_reported_values(
        axes, [dyn, all_m], [reported_value("dyn-time-worst") / 100, 1 - reported_value("all-m-loss-vgg16-128") / 100]
    )
    axes.set_ylabel("performance vs oracle")
    axes.set_ylim(0, 1.08)
    style.add_legend(axes, 8)
    return figure
