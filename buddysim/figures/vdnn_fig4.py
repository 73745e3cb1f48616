"""vDNN, Fig. 4: network-wide memory by purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.vdnn.paper_networks import GIB, SIX
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "vDNN, Fig. 4: network-wide memory by purpose"
ORDER = 104


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network; GiB by kind."""
    rows = []
    for label, name, batch in SIX:
        result = source.training.result(name, batch, "baseline-p")
        kinds = {
            "weights": result["memory.weights_bytes"],
            "weight gradients": result["memory.weight_gradient_bytes"],
            "feature maps": result["memory.feature_map_bytes"],
            "gradient maps": result["memory.gradient_map_bytes"],
            "workspace": result["memory.workspace_bytes"],
        }
        rows.append({"network": label, "gib": {kind: count / GIB for kind, count in kinds.items()}})
    return rows


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE)
    labels = [row["network"] for row in rows]
    kinds = list(rows[0]["gib"])
    heights = style.draw_stacked_bars(axes, labels, {kind: [row["gib"][kind] for row in rows] for kind in kinds})
    for n, (row, height) in enumerate(zip(rows, heights, strict=True)):
        percent = 100 * row["gib"]["feature maps"] / height
        axes.annotate(
            f"{percent:.0f} % feature maps", (n, height), (0, 2), textcoords="offset points", ha="center", fontsize=8
        )
    axes.set_ylabel("memory, GiB")
    style.add_legend(axes, len(kinds))
    return figure
