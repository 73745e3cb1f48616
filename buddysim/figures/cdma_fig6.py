"""cDMA, Fig. 6: density of every ReLU and pooling output over a training, and on the paper's networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cdma import density
from buddysim.papers.cdma.paper_networks import NETWORKS
from buddysim.plotting import style
from buddysim.training.contents import Codec
from buddysim.training.contents.observed_activations import observed_activations
from buddysim.training.named_network import load_network

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "cDMA, Fig. 6: densities of buddysim's training mapped to the paper's networks by relative depth"
ORDER = 206
SHOWN = ("VGG", "GoogLeNet", "AlexNet")


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each ReLU and pooling layer of some networks of the paper at points of buddysim's training."""
    activations = density.measurement()
    last = activations.points[-1].epoch
    rows = []
    for trained_fraction in (0.0, 0.05, 0.25, 0.5, 1.0):
        contents = observed_activations(None, trained_fraction * last)
        for label in SHOWN:
            network = load_network(NETWORKS[label][0])
            maps_ = contents.contents(network, 1, Codec())
            layers = [layer for layer in network.layers if layer.kind in ("relu", "maxpool")]
            rows += [
                {
                    "network": label,
                    "layer": layer.name,
                    "trained": trained_fraction,
                    "density": maps_[layer.index].density,
                }
                for layer in layers
            ]
    return rows


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(f"{TITLE}\n{density.caption()}", len(SHOWN), 1, width=11, height=8)
    for panel, network in zip(axes, SHOWN, strict=True):
        points = [row for row in rows if row["network"] == network]
        layers = list(dict.fromkeys(row["layer"] for row in points))
        series: dict[str, list[float]] = {}
        for row in points:
            series.setdefault(f"{100 * row['trained']:.0f} % trained", []).append(100 * row["density"])
        style.draw_grouped_bars(panel, layers, series)
        panel.set_title(network, fontsize=9, loc="left")
        panel.set_ylabel("density, %")
        style.rotate_group_labels(panel, 6)
    style.add_legend(axes[0], 5)
    return figure
