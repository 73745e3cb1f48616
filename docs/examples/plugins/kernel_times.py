"""A figure of one's own: how much longer each kernel of a trace takes under other memory configurations.

``python -m buddysim plot --plugin kernel_times.py kernel-times TRACE.bin -o kernels.png``
"""

from __future__ import annotations

from matplotlib.figure import Figure

from buddysim.figures import Source
from buddysim.figures.drawing import style

TITLE = "time of each kernel against unlimited device memory (ideal)"
FILE = ("TRACE.bin", "a trace file")

SCHEMES = ("buddy", "bandwidth", "host")
Slowdowns = dict[str, dict[str, float]]


def data(source: Source) -> Slowdowns:
    """Time over ideal's, by scheme and kernel."""
    results = source.replay(source.file, ("ideal", *SCHEMES))
    ideal = {f"{kernel['index']} {kernel['name']}": kernel["time_ps"] for kernel in results["ideal"]["per_kernel"]}
    return {
        scheme: {
            name: kernel["time_ps"] / ideal[name]
            for name, kernel in zip(ideal, results[scheme]["per_kernel"], strict=True)
        }
        for scheme in SCHEMES
    }


def draw(slowdowns: Slowdowns) -> Figure:
    figure, axes = style.figure(TITLE)
    kernels = list(slowdowns[SCHEMES[0]])
    style.grouped(axes, kernels, {scheme: list(times.values()) for scheme, times in slowdowns.items()}, form="{:.2f}")
    axes.axhline(1, color=style.PALE, linewidth=0.8, linestyle=":")
    axes.set_ylabel("time over ideal's")
    style.legend(axes, len(SCHEMES))
    return figure
