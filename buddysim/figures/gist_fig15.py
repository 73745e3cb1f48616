"""Gist, Fig. 15: slowdown of Gist, vDNN and naive swapping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.gist.layer_times import scheme_slowdowns, slowdowns
from buddysim.papers.gist.paper_networks import NETWORKS, lossy
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Gist, Fig. 15: slowdown of Gist, vDNN and naive swapping"
ORDER = 315


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network; slowdown in per cent against the same algorithms without."""
    by_scheme = {
        "naive swapping": scheme_slowdowns("naive-swap"),
        "vDNN": scheme_slowdowns("vdnn-all-m"),
        "Gist": slowdowns(lossy),
    }
    return [{"network": label, **{name: amounts[label] for name, amounts in by_scheme.items()}} for label in NETWORKS]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(f"{TITLE} (12.8 GB/s)")
    names = ("naive swapping", "vDNN", "Gist")
    style.draw_grouped_bars(
        axes, [row["network"] for row in rows], {name: [row[name] for row in rows] for name in names}, "{:.0f}"
    )
    style.draw_reported_line(axes, reported_value("swap-average"), "paper: naive, average")
    style.draw_reported_line(axes, reported_value("vdnn-average"), "paper: vDNN, average")
    style.draw_reported_line(axes, reported_value("overhead-lossy"), "paper: Gist, average")
    axes.set_ylabel("slowdown, %")
    style.add_legend(axes, 3)
    return figure
