"""cDMA, Fig. 13: performance of cDMA on Maxwell and Pascal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cdma import density
from buddysim.papers.cdma.paper_networks import NETWORKS
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "cDMA, Fig. 13: performance of the feature layers vs the oracle (cuDNN 5, 12.8 GB/s, joins offloaded)"
ORDER = 213

SCHEMES = {
    "vdnn-all-p": "vDNN", "cdma-rl": "RL", "cdma-zv": "ZV", "cdma-zl": "ZL", "cdma-bw": "BW", "oracle": "oracle",
}  # fmt: skip
MACHINES = {"titan-x": "Titan X (Maxwell)", "titan-xp": "Titan Xp (Pascal)"}
GAINS = {"titan-x": "32 % on average, 61 % at most", "titan-xp": "53 % on average, 79 % at most"}


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each machine, network and scheme."""
    return [
        {
            "machine": machine,
            "network": label,
            "scheme": scheme,
            "performance": result["feature_layers.oracle_ms"] / result["feature_layers.time_ms"],
        }
        for machine in MACHINES
        for label, (name, batch) in NETWORKS.items()
        for scheme, result in source.training.training_results(
            name, batch, SCHEMES, machine, conv_library="cudnn5"
        ).items()
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(f"{TITLE}\n{density.caption()}", 1, 2, width=13, sharey=True)
    reached = {(row["machine"], row["network"], row["scheme"]): row["performance"] for row in rows}
    networks = list(NETWORKS)
    for panel, (machine, shown) in zip(axes, MACHINES.items(), strict=True):
        style.draw_grouped_bars(
            panel, networks, {label: [reached[machine, n, s] for n in networks] for s, label in SCHEMES.items()}
        )
        gains = [100 * (reached[machine, n, "cdma-zv"] / reached[machine, n, "vdnn-all-p"] - 1) for n in networks]
        measured = f"ZV over vDNN: {sum(gains) / len(gains):.0f} % on average, {max(gains):.0f} % at most"
        panel.set_title(f"{shown}\n{measured}; paper: {GAINS[machine]}", fontsize=8, loc="left")
        panel.set_ylim(0, 1.05)
    axes[0].set_ylabel("performance vs oracle")
    axes[1].legend(ncols=6, fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.08), handlelength=1)
    return figure
