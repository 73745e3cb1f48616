"""vDNN, Fig. 6: time of each layer of VGG-16, and how long its X waits for its backward step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "vDNN, Fig. 6: time and reuse distance of each layer of VGG-16 (64)"
ORDER = 106


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each CONV and FC layer; ms."""
    keys = ("name", "forward_ms", "backward_ms", "reuse_distance_ms")
    rows = source.training.result("vgg19", 64, "oracle")["per_layer"]
    return [{key: row[key] for key in keys} for row in rows if row["weights_bytes"]]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE, width=10.5)
    labels = [row["name"] for row in rows]
    parts = {
        "forward": [row["forward_ms"] for row in rows],
        "backward": [row["backward_ms"] for row in rows],
    }
    style.draw_grouped_bars(axes, labels, parts)
    axes.set_ylabel("computing time, ms")
    reuse = axes.twinx()
    reuse.plot(labels, [row["reuse_distance_ms"] for row in rows], "o-", color=style.INK, ms=3, lw=0.8)
    style.mark_reported_values(reuse, [0], [reported_value("reuse-vgg16-64")], "paper: more than 1200 ms")
    reuse.set_ylim(0)
    reuse.set_ylabel("reuse distance, ms (line)")
    reuse.tick_params(labelsize=8)
    style.rotate_group_labels(axes)
    style.add_legend(axes, 2, loc="lower left", bbox_to_anchor=(0, 1))
    style.add_legend(reuse, 1)
    return figure
