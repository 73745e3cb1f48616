"""Gist, Fig. 14: SSDC's ratio over a training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.gist.csr_rows import rows_bytes
from buddysim.papers.cdma import density
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Gist, Fig. 14: compression ratio of SSDC over a training"
ORDER = 314


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each feature map of a ReLU or pooling layer and point of buddysim's training."""
    rows = [row for row in density.rows() if row["part"] == "features" and row["kind"] in ("relu", "maxpool")]
    count = 256 * 1000
    return [
        {
            **row,
            "ratio": 4 * count / rows_bytes(count, round(row["density"] * count), 4 * round(row["density"] * count)),
        }
        for row in rows
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(f"{TITLE}\n{density.caption()}")
    for n, name in enumerate(dict.fromkeys(row["feature_map"] for row in rows)):
        points = [row for row in rows if row["feature_map"] == name]
        colour = style.SERIES[n % len(style.SERIES)]
        axes.plot(
            [r["iteration"] for r in points], [r["ratio"] for r in points], "o-", ms=2, lw=1, color=colour, label=name
        )
    axes.axhline(1, color=style.PALE, linewidth=0.8)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlabel("iteration")
    axes.set_ylabel("feature map bytes / sparse rows bytes")
    style.add_legend(axes, 5)
    return figure
