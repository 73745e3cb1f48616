"""A figure of your own: the time of each kernel function under some memory configurations.

``python -m buddysim plot --plugin kernel_times.py kernel-times TRACE.bin -o kernels.png``
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from buddysim.figures import ResultSource
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "time of each kernel function against unlimited device memory (ideal)"
FILE = ("TRACE.bin", "a trace file")

SCHEMES = ("buddy", "bandwidth-compression", "pinned-host")


def data(source: ResultSource) -> dict[str, Counter[str]]:
    """Picoseconds in all launches of a function, by scheme and function."""
    times: dict[str, Counter[str]] = {}
    for scheme, result in source.replay(source.file, ("ideal", *SCHEMES)).items():
        times[scheme] = Counter()
        for launch in result["per_kernel"]:
            times[scheme][launch["name"]] += launch["time_ps"]
    return times


def draw(times: dict[str, Counter[str]]) -> Figure:
    figure, axes = style.make_figure(TITLE)
    ideal = times["ideal"]
    series = {scheme: [times[scheme][name] / ideal[name] for name in ideal] for scheme in SCHEMES}
    style.draw_grouped_bars(axes, list(ideal), series, form="{:.2f}")
    axes.axhline(1, color=style.PALE, linewidth=0.8, linestyle=":")
    axes.set_ylabel("time over ideal's")
    style.add_legend(axes, len(SCHEMES))
    return figure
