"""cDMA, Fig. 5: positions of zeros in feature maps over a training: one image, black where an element is zero."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cdma import density
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "cDMA, Fig. 5: zeros (black) of one image's feature maps over a training"
ORDER = 205


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each feature map and point with stored values: channels side by side, 1 for nonzero elements."""
    activations = density.measurement()
    stored = set(activations.stored_values)
    rows = []
    for n in density.shown_maps():
        info = activations.feature_maps[n]
        if info.part != "features" or len(info.shape) != 3:
            continue
        for number, point in enumerate(activations.points):
            if (number, n) in stored:
                image = (activations.values(number, n)[0] != 0).astype(np.uint8)
                rows.append(
                    {
                        "feature_map": info.name,
                        "shape": info.shape,
                        "iteration": point.iteration,
                        "nonzero": grid(image),
                    }
                )
    return rows


def grid(channels: Any) -> Any:
    """Channels (C, H, W) as one image: a nearly square grid, its lines of value 1."""
    count, height, width = channels.shape
    across = math.ceil(math.sqrt(count))
    down = math.ceil(count / across)
    whole = np.ones((down * (height + 1), across * (width + 1)), dtype=np.uint8)
    for n, channel in enumerate(channels):
        y, x = divmod(n, across)
        whole[y * (height + 1) : y * (height + 1) + height, x * (width + 1) : x * (width + 1) + width] = channel
    return whole


def draw(rows: list[dict[str, Any]]) -> Figure:
    names = list(dict.fromkeys(row["feature_map"] for row in rows))
    iterations = sorted({row["iteration"] for row in rows})
    by_cell = {(row["feature_map"], row["iteration"]): row for row in rows}
    title = f"{TITLE}\n{density.caption()}"
    size = {"width": 1.4 * len(iterations), "height": 1.45 * len(names) + 0.6, "squeeze": False}
    figure, axes = style.make_figure(title, len(names), len(iterations), **size)
    for y, name in enumerate(names):
        for x, iteration in enumerate(iterations):
            panel = axes[y, x]
            panel.set_xticks([])
            panel.set_yticks([])
            row = by_cell.get((name, iteration))
            if row is not None:
                panel.imshow(row["nonzero"], cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="auto")
                if x == 0:
                    panel.set_ylabel(f"{name}\n{row['shape']}", fontsize=7)
            if y == 0:
                panel.set_title(f"{100 * iteration / iterations[-1]:.0f} %", fontsize=8)
    return figure
