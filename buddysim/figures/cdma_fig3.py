"""cDMA, Fig. 3: cost of vDNN's copies by computing speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cdma.paper_networks import NETWORKS
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "cDMA, Fig. 3: performance of vDNN with newer libraries and GPUs (PCIe gen3, 12.8 GB/s, joins offloaded)"
ORDER = 203

LIBRARIES = ("cudnn4", "cudnn5")  # libraries of the paper with published timings
MACHINES = ("k40", "m40", "titan-x", "p100", "titan-xp", "v100")


def data(source: ResultSource) -> dict[str, list[dict[str, Any]]]:
    """``library`` and ``machine``: rows of network, library or machine, oracle ms, performance over the oracle's."""

    def row(label: str, varies: str, machine: str, **options: Any) -> dict[str, Any]:
        result = source.training.result(*NETWORKS[label], "vdnn-all-p", machine, **options)
        return {
            "network": label,
            "varied": varies,
            "oracle_ms": result["feature_layers.oracle_ms"],
            "performance": result["feature_layers.oracle_ms"] / result["feature_layers.time_ms"],
            "calibrated": result["provenance"]["calibrated"],
        }

    return {
        "library": [row(label, name, "titan-x", conv_library=name) for label in NETWORKS for name in LIBRARIES],
        "machine": [row(label, name, name) for label in NETWORKS for name in MACHINES],
    }


def draw(data: dict[str, list[dict[str, Any]]]) -> Figure:
    figure, axes = style.make_figure(TITLE, 1, 2, width=12, width_ratios=(2, 3))
    for panel, (what, rows) in zip(axes, data.items(), strict=True):
        networks = list(dict.fromkeys(row["network"] for row in rows))
        series: dict[str, list[float]] = {}
        for row in rows:
            name = row["varied"] if row["calibrated"] else f"{row['varied']} (uncalibrated)"
            series.setdefault(name, []).append(row["performance"])
        style.draw_grouped_bars(panel, networks, series)
        panel.set_ylim(0, 1.08)
        panel.set_ylabel("performance vs oracle")
        panel.set_title("library, on a Titan X" if what == "library" else "GPU", fontsize=9, loc="left")
        style.add_legend(panel, 3)
        style.rotate_group_labels(panel, 8)
    axes[0].set_xlabel("layer times fitted to convnet-benchmarks (cudnn4), DeepBench (cudnn5)", fontsize=7)
    style.draw_reported_line(axes[1], 1 - reported_value("vdnn-loss") / 100, "paper: average")
    style.draw_reported_line(axes[1], 1 - reported_value("vdnn-loss-most") / 100, "paper: worst")
    return figure
