"""Style of figures: colours that are distinct in grey, few lines, papers' values as red marks."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, PALE, REPORTED = "#222222", "#8a8a8a", "#b3261e"
LINES_ONLY = (
    "Red lines: values that the paper's text reports for all bars; single bars could not be read from its figure."
)
#: Each differs from each other one in lightness, neighbours by much.
SERIES = (
    "#1f4e79", "#9dc3e6", "#c55a11", "#f9d5b5", "#6f9e5f", "#e2f0d9", "#6b549c", "#a99bd6", "#16202b",
)  # fmt: skip
KINDS = {
    "weights": "#16202b",
    "weight gradients": "#5b4a8a",
    "feature maps": "#1f4e79",
    "gradient maps": "#9dc3e6",
    "workspace": "#f4b183",
}


def make_figure(
    title: str, rows: int = 1, columns: int = 1, width: float = 9.6, height: float = 4.2, **more: Any
) -> tuple[Figure, Any]:
    """Make a figure with a title, and its axes.

    Parameters
    ----------
    rows, columns : numbers of axes
    width, height : inches
    more : arguments of matplotlib's ``Figure.subplots``

    Returns
    -------
    the figure, and its axes: one, or an array of them
    """
    from buddysim.plotting.notebook_figure import NotebookFigure

    figure = NotebookFigure(figsize=(width, height), dpi=110, layout="constrained")
    axes = figure.subplots(rows, columns, **more)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, color=INK)
    for panel in axes.flat if hasattr(axes, "flat") else [axes]:
        style_axes(panel)
    return figure, axes


def style_axes(axes: Axes) -> None:
    """Remove the frame of axes, and make its lines pale."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(PALE)
    axes.tick_params(colors=INK, labelsize=8)
    axes.xaxis.label.set_fontsize(9)
    axes.yaxis.label.set_fontsize(9)


def draw_grouped_bars(
    axes: Axes, groups: Sequence[str], series: Mapping[str, Sequence[float | None]], form: str = ""
) -> None:
    """Draw the bars of several series side by side for each group.

    Parameters
    ----------
    groups : labels on the horizontal axis
    series : a value for each group, by label; None: no bar
    form : format of the value written over each bar, such as ``"{:.1f}"``; "": none
    """
    width = 0.8 / max(len(series), 1)
    for n, (label, values) in enumerate(series.items()):
        offset = (n - (len(series) - 1) / 2) * width
        points = [(x + offset, value) for x, value in enumerate(values) if value is not None]
        axes.bar([x for x, _ in points], [v for _, v in points], width, label=label, color=SERIES[n % len(SERIES)])
        if form:
            for x, value in points:
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


def draw_stacked_bars(
    axes: Axes, groups: Sequence[str], parts: Mapping[str, Sequence[float]], width: float = 0.6
) -> list[float]:
    """Draw one bar for each group, its parts stacked; return the heights of the bars."""
    heights = [0.0] * len(groups)
    for n, (label, values) in enumerate(parts.items()):
        colour = KINDS.get(label, SERIES[n % len(SERIES)])
        axes.bar(range(len(groups)), values, width, bottom=heights, label=label, color=colour)
        heights = [height + value for height, value in zip(heights, values, strict=True)]
    axes.set_xticks(range(len(groups)), groups)
    return heights


def add_caption(axes: Axes, text: str, instead_of: str = "") -> None:
    """Add a paragraph to the caption under the figure, once; in place of another paragraph, if the caption has it."""
    figure = axes.figure
    before = [paragraph for paragraph in figure.get_supxlabel().splitlines() if paragraph != instead_of]
    if text in before:
        return
    text_object = figure.supxlabel("\n".join([*before, text]), x=0.01, ha="left", fontsize=7, color=INK)
    text_object.set_wrap(True)


def mark_reported_values(
    axes: Axes, x: Sequence[float], y: Sequence[float], label: str = "paper", missing: str = ""
) -> None:
    """Mark values that the paper reports; the caption says for how many of the bars. Draw the bars first.

    Parameters
    ----------
    missing : caption, where the marks are no heights of these bars
    """
    from matplotlib.patches import Rectangle

    bars = len({round(bar.get_x() + bar.get_width() / 2, 3) for bar in axes.patches if isinstance(bar, Rectangle)})
    if len(x) < bars or missing:
        add_caption(
            axes,
            missing
            or f"Red marks: {len(x)} of these {bars} bars, whose values the paper's text reports; the others could not "
            "be read from its figure.",
            instead_of=LINES_ONLY,
        )
    axes.scatter(x, y, marker="D", s=26, facecolor="white", edgecolor=REPORTED, linewidth=1.4, zorder=5, label=label)


def draw_reported_line(axes: Axes, y: float, text: str) -> None:
    """Draw a line at an average or bound that the paper reports; the caption says that single bars are unknown."""
    if "could not be read" not in axes.figure.get_supxlabel():
        add_caption(axes, LINES_ONLY)
    axes.axhline(y, color=REPORTED, linewidth=0.9, linestyle="--", zorder=4)
    axes.annotate(
        textwrap.fill(text, 14), (1, y), (3, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
        va="center", fontsize=7, color=REPORTED,
    )  # fmt: skip


def add_legend(axes: Axes, columns: int = 4, **more: Any) -> None:
    """Add a legend above the axes."""
    defaults: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1.0), "fontsize": 8, "frameon": False}
    axes.legend(ncols=columns, **{**defaults, "handlelength": 1, **more})


def rotate_group_labels(axes: Axes, size: float = 7) -> None:
    """Rotate the labels of groups by 90 degrees, for many groups."""
    for label in axes.get_xticklabels():
        label.set_rotation(90)
        label.set_fontsize(size)
