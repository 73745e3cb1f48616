"""cDMA, Fig. 4: density of each feature map over a training, from dark to light."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cdma import density
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "cDMA, Fig. 4: density of each feature map over a training, from dark to light"
ORDER = 204
SHOWN = 16


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each feature map and point of the training."""
    return density.rows()


def draw(rows: list[dict[str, Any]]) -> Figure:
    from matplotlib import colormaps

    figure, axes = style.make_figure(f"{TITLE}\n{density.caption()}", width=11)
    names = list(dict.fromkeys(row["feature_map"] for row in rows))
    for group, name in enumerate(names):
        points = [row for row in rows if row["feature_map"] == name]
        shown_points = [points[round(step * (len(points) - 1) / (SHOWN - 1))] for step in range(SHOWN)]
        for step, row in enumerate(shown_points):
            colour = colormaps["Blues_r"](0.05 + 0.75 * step / SHOWN)
            axes.bar(group + (step - SHOWN / 2) * 0.8 / SHOWN, 100 * row["density"], 0.8 / SHOWN, color=colour)
    low, high = reported_value("first-conv")
    axes.fill_between([-0.5, 0.5], low, high, color=style.REPORTED, alpha=0.2, linewidth=0)
    axes.annotate("paper: first CONV", (0.5, high), fontsize=7, color=style.REPORTED)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("density, %")
    style.rotate_group_labels(axes, 8)
    return figure
