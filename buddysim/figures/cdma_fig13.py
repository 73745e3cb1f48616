"""cDMA, Fig. 13: performance of cDMA on Maxwell and Pascal."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cdma import density
from buddysim.papers.cdma.paper_networks import NETWORKS
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "cDMA, Fig. 13: performance of the feature layers vs the oracle (cuDNN 5, 12.8 GB/s, joins offloaded)"
ORDER = 213

SCHEMES = {
    "vdnn-all-p": "vDNN", "cdma-rl": "RL", "cdma-zv": "ZV", "cdma-zl": "ZL", "cdma-bw": "BW", "oracle": "oracle",
}  # fmt: skip
MACHINES = {"titan-x": "Titan X (Maxwell)", "titan-xp": "Titan Xp (Pascal)"}
#: Ids of the paper's mean and largest gain of ZV over vDNN.
GAINS = {"titan-x": ("gain-titan-x", "gain-titan-x-most"), "titan-xp": ("gain-titan-xp", "gain-titan-xp-most")}
MEAN = "mean"


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
    for machine, scheme in {(m, s) for m, _, s in reached}:
        reached[machine, MEAN, scheme] = fmean(reached[machine, network, scheme] for network in networks)
    for panel, (machine, shown) in zip(axes, MACHINES.items(), strict=True):
        style.draw_grouped_bars(
            panel,
            [*networks, MEAN],
            {label: [reached[machine, n, s] for n in (*networks, MEAN)] for s, label in SCHEMES.items()},
        )
        mean, most = (reported_value(id) for id in GAINS[machine])
        of_zv = panel.containers[list(SCHEMES).index("cdma-zv")].patches[-1]
        style.mark_reported_values(
            panel,
            [of_zv.get_x() + of_zv.get_width() / 2],
            [reached[machine, MEAN, "vdnn-all-p"] * (1 + mean / 100)],
            missing="Red mark: the paper's mean gain of ZV over vDNN, on the simulated mean of vDNN; single bars could "
            "not be read from its figure.",
        )
        gains = [100 * (reached[machine, n, "cdma-zv"] / reached[machine, n, "vdnn-all-p"] - 1) for n in networks]
        measured = f"ZV over vDNN: {sum(gains) / len(gains):.0f} % on average, {max(gains):.0f} % at most"
        panel.set_title(
            f"{shown}\n{measured}; paper: {mean:g} % on average, {most:g} % at most", fontsize=8, loc="left"
        )
        panel.set_ylim(0, 1.05)
    axes[0].set_ylabel("performance vs oracle")
    axes[1].legend(ncols=6, fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.08), handlelength=1)
    return figure
