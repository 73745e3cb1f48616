"""How figures look: colours that stay apart in grey, few lines, the papers' numbers as marks."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, PALE, STATED = "#222222", "#8a8a8a", "#b3261e"
SERIES = ("#1f4e79", "#9dc3e6", "#c55a11", "#f4b183", "#4f7942", "#b7d3a8", "#5b4a8a", "#cfc6e6", "#16202b")
KINDS = {
    "weights": "#16202b",
    "weight gradients": "#5b4a8a",
    "feature maps": "#1f4e79",
    "gradient maps": "#9dc3e6",
    "workspace": "#f4b183",
}


def figure(title: str, rows: int = 1, columns: int = 1, width: float = 9.6, height: float = 4.2, **more: Any) -> Any:
    """A figure with its title and its axes (one, or an array of them)."""
    made = Figure(figsize=(width, height), dpi=110, layout="constrained")
    axes = made.subplots(rows, columns, **more)
    made.suptitle(title, x=0.01, ha="left", fontsize=11, color=INK)
    for one in axes.flat if hasattr(axes, "flat") else [axes]:
        tidy(one)
    return made, axes


def tidy(axes: Axes) -> None:
    """Takes away what says nothing."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(PALE)
    axes.tick_params(colors=INK, labelsize=8)
    axes.xaxis.label.set_size(9)
    axes.yaxis.label.set_size(9)


def grouped(axes: Axes, groups: Sequence[str], series: Mapping[str, Sequence[float | None]], form: str = "") -> None:
    """Bars of several series side by side for each group; None leaves a gap.

    Parameters
    ----------
    form : writes each value over its bar in that form
    """
    width = 0.8 / max(len(series), 1)
    for place, (label, values) in enumerate(series.items()):
        offset = (place - (len(series) - 1) / 2) * width
        spots = [(x + offset, value) for x, value in enumerate(values) if value is not None]
        axes.bar([x for x, _ in spots], [v for _, v in spots], width, label=label, color=SERIES[place % len(SERIES)])
        if form:
            for x, value in spots:
                axes.annotate(
                    form.format(value),
                    (x, value),
                    (0, 5),
                    textcoords="offset points",
                    ha="center",
                    fontsize=6,
                    color=INK,
                )
    axes.set_xticks(range(len(groups)), groups)


def stacked(axes: Axes, groups: Sequence[str], parts: Mapping[str, Sequence[float]], width: float = 0.6) -> list[float]:
    """One bar for each group, of parts on each other; gives the heights."""
    heights = [0.0] * len(groups)
    for place, (label, values) in enumerate(parts.items()):
        colour = KINDS.get(label, SERIES[place % len(SERIES)])
        axes.bar(range(len(groups)), values, width, bottom=heights, label=label, color=colour)
        heights = [height + value for height, value in zip(heights, values, strict=True)]
    axes.set_xticks(range(len(groups)), groups)
    return heights


def stated(axes: Axes, x: Sequence[float], y: Sequence[float], label: str = "paper") -> None:
    """Marks what the paper states."""
    axes.scatter(x, y, marker="D", s=26, facecolor="white", edgecolor=STATED, linewidth=1.4, zorder=5, label=label)


def stated_line(axes: Axes, y: float, text: str) -> None:
    """A line across, where the paper states an average or a bound."""
    axes.axhline(y, color=STATED, linewidth=0.9, linestyle="--", zorder=4)
    axes.annotate(
        textwrap.fill(text, 14), (1, y), (3, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
        va="center", fontsize=7, color=STATED,
    )  # fmt: skip


def legend(axes: Axes, columns: int = 4, **more: Any) -> None:
    """Over the axes, in a row."""
    more = {"loc": "lower right", "bbox_to_anchor": (1, 1.0), "fontsize": 8, "frameon": False, "handlelength": 1} | more
    axes.legend(ncols=columns, **more)


def turned(axes: Axes, size: float = 7) -> None:
    """Labels of the groups upright, where they are many."""
    for label in axes.get_xticklabels():
        label.set_rotation(90)
        label.set_fontsize(size)
