"""Figure of measured and replayed curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from buddysim.plotting import style

_COLUMNS = 4
_ROW_IN = 2.2


@dataclass(frozen=True)
class Panel:
    """A curve: its title, its source, and x, measured and simulated of its points."""

    title: str
    source: str
    points: Sequence[tuple[float, float, float]]


def draw(panels: Sequence[Panel]) -> Figure:
    """Plot a panel for each curve; dots: measured, lines: simulated."""
    rows = -(-len(panels) // _COLUMNS)
    figure, axes = style.make_figure(
        "Microbenchmarks: measured (dots) and simulated (lines)", rows, _COLUMNS, 13, 0.5 + _ROW_IN * rows
    )
    every = list(axes.flat)
    for panel, own in zip(panels, every, strict=False):
        xs = [x for x, _, _ in panel.points]
        own.plot(xs, [y for _, y, _ in panel.points], ".", color=style.REPORTED, markersize=3)
        own.plot(xs, [y for _, _, y in panel.points], "-", color=style.SERIES[0], linewidth=1)
        own.set_title(f"{panel.title.replace('_', ' ')}\n{panel.source}", fontsize=7, loc="left")
        if max(xs) > 1000:
            own.set_xscale("log")
        own.set_yscale("log")
    for own in every[len(panels) :]:
        own.set_visible(False)
    return figure
