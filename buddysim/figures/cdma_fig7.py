"""cDMA, Fig. 7: loss and density of the CONV layers over a training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cdma import density
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "cDMA, Fig. 7: loss and densities over a training"
ORDER = 207


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each ReLU of the features and point."""
    return [row for row in density.rows() if row["kind"] == "relu" and row["part"] == "features"]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(f"{TITLE}\n{density.caption()}")
    for n, name in enumerate(dict.fromkeys(row["feature_map"] for row in rows)):
        points = [row for row in rows if row["feature_map"] == name]
        colour = style.SERIES[n % len(style.SERIES)]
        axes.plot(
            [r["iteration"] for r in points],
            [100 * r["density"] for r in points],
            "o-",
            ms=2,
            lw=1,
            color=colour,
            label=name,
        )
    axes.set_xscale("symlog", linthresh=1)  # the densities move most in the first iterations
    axes.set_xlabel("iteration")
    axes.set_ylabel("density, %")
    loss = axes.twinx()
    first = [row for row in rows if row["feature_map"] == rows[0]["feature_map"] and row["loss"] is not None]
    loss.plot([r["iteration"] for r in first], [r["loss"] for r in first], color=style.PALE, lw=0.8, label="loss")
    loss.set_ylim(0)
    loss.set_ylabel("loss (grey)")
    loss.tick_params(labelsize=8)
    style.add_legend(axes, 6)
    return figure
