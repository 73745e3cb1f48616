"""cDMA, Fig. 12: link traffic, normalized to vDNN's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cdma import density
from buddysim.papers.cdma.paper_networks import NETWORKS
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "cDMA, Fig. 12: link traffic, normalized to vDNN's"
ORDER = 212

SCHEMES = {"vdnn-all-p": "vDNN", "cdma-rl": "RL", "cdma-zv": "ZV", "cdma-zl": "ZL"}


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network: traffic over vDNN's, by scheme."""
    rows = []
    for label, (name, batch) in NETWORKS.items():
        results = source.training.training_results(name, batch, SCHEMES, conv_library="cudnn5")
        vdnn_bytes = results["vdnn-all-p"]["link.bytes"]
        rows.append({"network": label, "traffic": {s: r["link.bytes"] / vdnn_bytes for s, r in results.items()}})
    return rows


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(f"{TITLE}\n{density.caption()}")
    labels = [row["network"] for row in rows]
    style.draw_grouped_bars(
        axes, labels, {shown: [row["traffic"][s] for row in rows] for s, shown in SCHEMES.items()}, "{:.2f}"
    )
    style.draw_reported_line(axes, 1 / reported_value("zvc-average"), "paper: ZV on average 1 / 2.6")
    axes.set_ylabel("link traffic / vDNN's link traffic")
    style.add_legend(axes, 4)
    return figure
