"""CSWAP, Fig. 12: results of searches for launch parameters."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cswap.codec_models import CURVES, PAPER, check_text, checks, searches
from buddysim.papers.cswap.iterations import training_text
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "CSWAP, Fig. 12: codec time of an iteration of VGG16 (128) on a V100, by search for the launch"
ORDER = 412

SEARCHES = {"random": "12-random", "expert": "12-expert", "BO": "12-bo", "grid": "12-grid"}


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each curve, search and seed, and one for each direct simulation of a result."""
    direct = [
        {"check": c.layout, "search": c.search, "grid": c.launch.grid, "block": c.launch.block,
         "mib": c.byte_count / 2**20, "table_ms": c.table_ms, "direct_ms": c.direct_ms}
        for c in checks()
    ]  # fmt: skip
    searched = [
        {"curve": curve, "search": name, "ms": one.cost, "grid": one.launch.grid, "block": one.launch.block,
         "evaluations": one.evaluations}
        for curve in CURVES
        for name, each in searches(curve).items()
        for one in each
    ]  # fmt: skip
    return [*searched, *direct]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE, 1, len(CURVES), width=12)
    for panel, curve in zip(axes, CURVES, strict=True):
        by_search = {name: [r for r in rows if (r.get("curve"), r["search"]) == (curve, name)] for name in SEARCHES}
        bars: list[float | None] = [median(row["ms"] for row in own) for own in by_search.values()]
        style.draw_grouped_bars(panel, list(SEARCHES), {curve: bars}, "{:.0f}")
        for position, own in enumerate(by_search.values()):
            panel.scatter([position] * len(own), [row["ms"] for row in own], s=8, color=style.INK, zorder=3)
        title = "through the paper's Fig. 5" if curve == PAPER else f"simulated kernels, {curve}"
        panel.set_title(title, fontsize=9, loc="left")
    reported = [float(reported_value(id)) for id in SEARCHES.values()]
    style.mark_reported_values(
        axes[-1], range(len(SEARCHES)), reported, "paper", "Red marks: values that the paper reports for Fig. 12."
    )
    axes[-1].set_yscale("log")
    axes[0].set_ylabel("codec time, ms")
    style.add_caption(
        axes[0], "Bars: median of five seeds; dots: each. BO: 10 random points, 25 steps; random: one point."
    )
    style.add_caption(axes[0], training_text("VGG16"))
    style.add_caption(
        axes[0], f"Where they ended, direct simulations are off the table: {check_text()} (8 and 32 MiB)."
    )
    return figure
