"""vDNN, Fig. 5: memory that each layer of VGG-16 (256) needs in its forward step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.vdnn.paper_networks import GIB
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "vDNN, Fig. 5: memory of each layer of VGG-16 (256), forward"
ORDER = 105


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each layer with weights; bytes."""
    keys = ("name", "input_bytes", "output_bytes", "forward_workspace_bytes", "weights_bytes")
    rows = source.training.result("vgg19", 256, "baseline-p")["per_layer"]
    return [{key: row[key] for key in keys} for row in rows if row["weights_bytes"]]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE, width=10.5)
    labels = [row["name"] for row in rows]
    parts = {
        "X": [row["input_bytes"] / GIB for row in rows],
        "Y": [row["output_bytes"] / GIB for row in rows],
        "workspace": [row["forward_workspace_bytes"] / GIB for row in rows],
    }
    style.draw_stacked_bars(axes, labels, parts)
    axes.set_ylabel("X, Y and workspace, GiB")
    weights = axes.twinx()
    weights.plot(labels, [row["weights_bytes"] / 2**20 for row in rows], "o-", color=style.INK, ms=3, lw=0.8)
    weights.set_ylabel("weights, MiB (line)")
    weights.tick_params(labelsize=8)
    style.rotate_group_labels(axes)
    style.add_legend(axes, 3)
    return figure
