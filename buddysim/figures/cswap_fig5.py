"""CSWAP, Fig. 5: ZVC of 500 MB with 50 % zeros over the grid, both ways; all codecs at their best, published rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.gpu_codecs import BLOCKS, REGISTRY
from buddysim.gpu_codecs.paper_times import BYTES, POINTS
from buddysim.gpu_codecs.published import both_ways_ms, rates
from buddysim.gpu_codecs.times import simulated_machines
from buddysim.papers.cswap.codec_models import (
    CURVES,
    PAPER,
    bandwidth_ms,
    best_both_ways,
    fig5_ms,
    grids,
    linearity,
)
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "CSWAP, Fig. 5: ZVC compression and decompression of 500 MB, 50 % zeros, on a V100, by grid"
ORDER = 405


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return the rows of curves by block and grid, of codecs at their best launches, and of times over the size."""
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
    return [*curves, *_codecs(), *({"linear": True, **row} for row in sizes)]


def _codecs() -> list[dict[str, Any]]:
    """Simulated codecs at their best launches, bytes over bandwidth, and nvCOMP's codecs: ``codec`` names each."""
    bars_: list[dict[str, Any]] = []
    for codec in REGISTRY.names():
        for layout in REGISTRY.find(codec).LAYOUTS:
            if not simulated_machines(codec, layout):
                continue
            best = best_both_ways(codec, layout)
            name = codec if layout == CURVES[0] else f"{codec}, {layout}"
            bars_.append({"codec": name, "ms": best.total_ps / 1e9, "grid": best.grid, "block": best.block})
    bars_.append({"codec": "bytes / bandwidth", "ms": bandwidth_ms()})
    for codec in rates():
        spread = both_ways_ms(codec, BYTES)
        bars_.append({"codec": f"nvCOMP {codec}", "ms": spread.median, "min": spread.min, "max": spread.max})
    return bars_


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE, 1, 3, width=15, width_ratios=(3, 2, 2))
    curves = [row for row in rows if "curve" in row]
    for curve, block in dict.fromkeys((row["curve"], row["block"]) for row in curves):
        own = [row for row in curves if (row["curve"], row["block"]) == (curve, block)]
        label = "through the paper's points" if curve == PAPER else f"{curve}, groups of {block}"
        axes[0].plot([r["grid"] for r in own], [r["ms"] for r in own], marker=".", linewidth=1, label=label)
    style.mark_reported_values(
        axes[0], list(POINTS), list(POINTS.values()), "paper", "Red marks: the points that the paper reports."
    )
    axes[0].set(xscale="log", yscale="log", xlabel="work-groups", ylabel="compression + decompression, ms")
    axes[0].legend(fontsize=7, frameon=False)
    bars = [row for row in rows if "codec" in row]
    positions = list(range(len(bars)))
    axes[2].bar(positions, [row["ms"] for row in bars], 0.6)
    for position, row in zip(positions, bars, strict=True):
        if "max" in row:
            axes[2].vlines(position, row["min"], row["max"], color=style.INK)
    for grid, ms in POINTS.items():
        axes[2].axhline(ms, color=style.REPORTED, linewidth=0.9, linestyle="--")
        if grid > min(POINTS):  # the labels of the first and the last would overlap
            named = f"paper, grids {min(POINTS)} and {grid}" if grid == max(POINTS) else f"paper, grid {grid}"
            axes[2].annotate(named, (0, ms), (2, 2), textcoords="offset points", fontsize=6)
    axes[2].set_xticks(positions, [row["codec"] for row in bars])
    axes[2].set(yscale="log", ylabel="compression + decompression, ms")
    axes[2].set_title("codecs at their best launch, published rates", fontsize=9, loc="left")
    style.rotate_group_labels(axes[2])
    linear = [row for row in rows if "linear" in row]
    for layout, grid in dict.fromkeys((row["layout"], row["grid"]) for row in linear if row["mib"] > 32):
        points = sorted((r["mib"], r["ms_per_gib"]) for r in linear if (r["layout"], r["grid"]) == (layout, grid))
        axes[1].plot([x for x, _ in points], [y for _, y in points], marker=".", linewidth=1, label=f"{layout}, {grid}")
    axes[1].set(xscale="log", yscale="log", xlabel="simulated tensor, MiB", ylabel="time, ms/GiB")
    axes[1].set_title("linear in the size where flat", fontsize=9, loc="left")
    axes[1].legend(fontsize=6, frameon=False, ncols=2)
    style.add_caption(
        axes[0], f"Simulated up to 64 MiB, extrapolated to {BYTES / 2**20:.0f} MiB on the line of the largest two."
    )
    style.add_caption(
        axes[0],
        "nvCOMP: rates of NVIDIA's charts, on its GPUs and data: median, least and most of ten. "
        "Bytes / bandwidth: the tensor and its code, read and written once.",
    )
    return figure
