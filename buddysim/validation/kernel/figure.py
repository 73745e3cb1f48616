"""Figure of the cycles of every compared kernel: buddysim's and Accel-Sim's over the GPU's."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from buddysim.plotting import style
from buddysim.validation.kernel.counter_data import FITTED
from buddysim.validation.kernel.pairs import KernelPair


def draw(pairs: Sequence[KernelPair]) -> Figure:
    """Plot two panels, fitted and test programs; the diagonal is the GPU itself."""
    figure, axes = style.make_figure("Cycles of kernels: simulated over a Quadro GV100's", 1, 2, 9.6, 4.6)
    cycles = [pair.measured.counters.cycles for pair in pairs]
    ends = min(cycles) / 2, max(cycles) * 2
    for is_fitted, panel in zip((True, False), axes, strict=True):
        shown = [pair for pair in pairs if (pair.program in FITTED) == is_fitted]
        xs = [pair.measured.counters.cycles for pair in shown]
        panel.plot(ends, ends, "-", color=style.REPORTED, linewidth=1, label="Quadro GV100")
        panel.plot(xs, [p.measured.accelsim_cycles for p in shown], "x", color=style.SERIES[2], ms=4, label="Accel-Sim")
        panel.plot(xs, [p.replay.counters.cycles for p in shown], ".", color=style.SERIES[0], ms=5, label="simulated")
        for name in dict.fromkeys(pair.program for pair in shown):
            first = next(pair for pair in shown if pair.program == name)
            panel.annotate(
                name, (first.measured.counters.cycles, first.replay.counters.cycles), (4, -8), fontsize=6,
                textcoords="offset points",
            )  # fmt: skip
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel("cycles, measured")
        panel.set_title("fitted programs" if is_fitted else "test programs", fontsize=9, loc="left")
        panel.legend(fontsize=7, frameon=False)
    axes[0].set_ylabel("cycles, simulated")
    return figure
