"""vDNN, Fig. 13: memory bandwidth that the CONV layers of VGG-16 (256) reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "vDNN, Fig. 13: memory bandwidth utilization by CONV layers of VGG-16 (256), lower bound"
ORDER = 113


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each CONV layer: per cent of the peak, forward and backward, from the traffic of its shapes."""
    result = source.training.result("vgg19", 256, "oracle")
    peak = result["provenance"]["dram_bytes_per_s"]
    return [
        {
            "name": row["name"],
            **{
                pass_: 1e5 * row[f"{pass_}_dram_bytes"] / row[f"{pass_}_ms"] / peak for pass_ in ("forward", "backward")
            },
        }
        for row in result["per_layer"]
        if row["kind"] == "conv"
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE, width=10.5)
    labels = [row["name"] for row in rows]
    style.draw_grouped_bars(axes, labels, {pass_: [row[pass_] for row in rows] for pass_ in ("forward", "backward")})
    style.draw_reported_line(axes, reported_value("dram-worst"), "what offloading takes at most: 4.7 %")
    axes.set_ylabel("memory bandwidth utilization, %")
    style.rotate_group_labels(axes)
    style.add_legend(axes, 2)
    return figure
