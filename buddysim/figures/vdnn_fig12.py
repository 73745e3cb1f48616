"""vDNN, Fig. 12: bytes offloaded to pinned host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.reported_values import reported_value
from buddysim.papers.vdnn.paper_networks import GIB, SIX
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "vDNN, Fig. 12: bytes offloaded to pinned host memory"
ORDER = 112

SCHEMES = {"vdnn-all-m": "all", "vdnn-conv-m": "conv", "vdnn-dyn": "dyn"}


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network: GiB by scheme."""
    return [
        {
            "network": label,
            "gib": {
                s: r["host.peak_pinned_bytes"] / GIB
                for s, r in source.training.training_results(name, batch, SCHEMES).items()
            },
        }
        for label, name, batch in SIX
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE)
    labels = [row["network"] for row in rows]
    style.draw_grouped_bars(
        axes, labels, {label: [row["gib"][s] for row in rows] for s, label in SCHEMES.items()}, form="{:.1f}"
    )
    style.mark_reported_values(
        axes, [labels.index("VGG-16 (256)") - 0.27], [reported_value("offload-vgg16-256")], "paper: up to 16 GB"
    )
    axes.set_ylabel("offloaded, GiB")
    style.add_legend(axes, 4)
    return figure
