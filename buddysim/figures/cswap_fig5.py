"""CSWAP, Fig. 5: ZVC of 500 MB with 50 % zeros over the grid, both ways."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from buddysim.figures.drawing import style
from buddysim.figures.drawing.source import Source
from buddysim.gpu_codecs import BLOCKS
from buddysim.gpu_codecs.paper_times import BYTES, POINTS
from buddysim.papers.cswap.codecs import CURVES, PAPER, fig5_ms, grids, linearity

TITLE = "CSWAP, Fig. 5: ZVC and back of 500 MB, 50 % zeros, on a V100, over the grid"
ORDER = 405


def data(source: Source) -> list[dict[str, Any]]:
    """A row for each curve, block and grid; and those that show how times grow with the size."""
    curves = [
        {"curve": curve, "block": block, "grid": grid, "ms": fig5_ms(curve, grid, block)}
        for curve in CURVES
        for block in (BLOCKS if curve != PAPER else BLOCKS[:1])
        for grid in grids()
    ]
    sizes = [
        {
            "layout": s.layout,
            "grid": s.grid,
            "mib": s.byte_count / 2**20,
            "ms_per_gib": s.total_ps / s.byte_count * 1.073741824,
        }
        for s in linearity()
    ]
    return [*curves, *({"linear": True, **row} for row in sizes)]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.figure(TITLE, 1, 2, width=12, width_ratios=(3, 2))
    curves = [row for row in rows if "curve" in row]
    for curve, block in dict.fromkeys((row["curve"], row["block"]) for row in curves):
        own = [row for row in curves if (row["curve"], row["block"]) == (curve, block)]
        label = "through the paper's points" if curve == PAPER else f"{curve}, groups of {block}"
        axes[0].plot([r["grid"] for r in own], [r["ms"] for r in own], marker=".", linewidth=1, label=label)
    style.stated(axes[0], list(POINTS), list(POINTS.values()), "paper", "Red marks: the points that the paper states.")
    axes[0].set(xscale="log", yscale="log", xlabel="work-groups", ylabel="ms, both ways")
    axes[0].legend(fontsize=7, frameon=False)
    linear = [row for row in rows if "linear" in row]
    for layout, grid in dict.fromkeys((row["layout"], row["grid"]) for row in linear if row["mib"] > 32):
        points = sorted((r["mib"], r["ms_per_gib"]) for r in linear if (r["layout"], r["grid"]) == (layout, grid))
        axes[1].plot([x for x, _ in points], [y for _, y in points], marker=".", linewidth=1, label=f"{layout}, {grid}")
    axes[1].set(xscale="log", yscale="log", xlabel="MiB, simulated", ylabel="ms for each GiB")
    axes[1].set_title("linear in the size where flat", fontsize=9, loc="left")
    axes[1].legend(fontsize=6, frameon=False, ncols=2)
    style.caption(
        axes[0], f"Simulated up to 64 MiB, extrapolated to {BYTES / 2**20:.0f} MiB on the line of the largest two."
    )
    return figure
