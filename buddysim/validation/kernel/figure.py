"""Cycles of every compared kernel, the replay's and Accel-Sim's over the GPU's."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from buddysim.plotting import style
from buddysim.validation.kernel.counter_data import FITTED
from buddysim.validation.kernel.pairs import KernelPair


def draw(pairs: Sequence[KernelPair]) -> Figure:
    """Two panels, fitted and test programs; the diagonal is the GPU itself."""
    figure, axes = style.make_figure("Cycles of kernels: simulated over a Quadro GV100's", 1, 2, 9.6, 4.6)
    cycles = [pair.measured.counts.cycles for pair in pairs]
    ends = min(cycles) / 2, max(cycles) * 2
    for fitted, own in zip((True, False), axes, strict=True):
        chosen = [pair for pair in pairs if (pair.program in FITTED) == fitted]
        xs = [pair.measured.counts.cycles for pair in chosen]
        own.plot(ends, ends, "-", color=style.STATED, linewidth=1, label="Quadro GV100")
        own.plot(xs, [p.measured.accelsim_cycles for p in chosen], "x", color=style.SERIES[2], ms=4, label="Accel-Sim")
        own.plot(xs, [p.replay.counts.cycles for p in chosen], ".", color=style.SERIES[0], ms=5, label="replayed")
        for name in dict.fromkeys(pair.program for pair in chosen):
            last = next(pair for pair in chosen if pair.program == name)
            own.annotate(
                name, (last.measured.counts.cycles, last.replay.counts.cycles), (4, -8), fontsize=6,
                textcoords="offset points",
            )  # fmt: skip
        own.set_xscale("log")
        own.set_yscale("log")
        own.set_xlabel("cycles, measured")
        own.set_title("fitted programs" if fitted else "test programs", fontsize=9, loc="left")
        own.legend(fontsize=7, frameon=False)
    axes[0].set_ylabel("cycles, simulated")
    return figure
