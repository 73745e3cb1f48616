"""Buddy Compression, Fig. 10: simulated cycles against measured cycles."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from buddysim.figures.shared import study_style
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style
from buddysim.validation.correlation import log_correlation
from buddysim.validation.kernel.counter_data import load_measured_kernels
from buddysim.validation.kernel.pairs import pair_kernels
from buddysim.validation.kernel.replays import load_stored_replays

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Buddy Compression, Fig. 10: simulated and measured cycles of kernels"
ORDER = 112
STUDY = True
OPTIONS = study_style.OPTIONS
WIDTH_IN = study_style.WIDTH_IN


def data(source: ResultSource) -> FigureTable:
    """Return a row for each kernel of `validate kernels` with a stored replay."""
    compared = [pair for pair in pair_kernels(load_measured_kernels(), load_stored_replays()) if not pair.why_not]
    rows = [
        (
            pair.program, pair.replay.number, pair.measured.counters.cycles, pair.replay.counters.cycles,
            pair.measured.accelsim_cycles,
        )
        for pair in compared
    ]  # fmt: skip
    return FigureTable(("program", "kernel", "measured_cycles", "replayed_cycles", "accelsim_cycles"), rows)


def draw(table: FigureTable) -> Figure:
    figure, axes = study_style.make_figure(TITLE, height=3.0)
    rows = table.records()
    measured = [row["measured_cycles"] for row in rows]
    ends = min(measured) / 2, max(measured) * 2
    axes.plot(ends, ends, "--", color=style.INK, linewidth=0.8, label="simulated = measured")
    for who, name, mark, shade in (("accelsim", "Accel-Sim", "x", "0.6"), ("replayed", "buddysim", ".", "0.1")):
        cycles = [row[f"{who}_cycles"] for row in rows]
        correlation = log_correlation(list(zip(measured, cycles, strict=True)))
        error = median(abs(simulated / reference - 1) for simulated, reference in zip(cycles, measured, strict=True))
        axes.plot(
            measured,
            cycles,
            mark,
            color=shade,
            markersize=3,
            label=f"{name}: r {correlation:.3f}, median error {error:.0%}",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("measured (Quadro GV100), cycles")
    axes.set_ylabel("simulated, cycles")
    study_style.add_legend(axes, 1)
    programs = len({row["program"] for row in rows})
    study_style.add_caption(
        figure, table,
        f"Measured: counters of a Quadro GV100, {len(rows)} kernels of {programs} programs, cold caches. Simulated: "
        "the same programs in OpenCL, captured on a CPU, on gv100. r: correlation of logarithms. "
        f"Paper: r {reported_value('buddy-correlation'):g} for its simulator, "
        f"{reported_value('buddy-gpgpusim'):g} for GPGPU-Sim, other programs on a V100. Its right panel (speedup over "
        "GPGPU-Sim) was not run and is not plotted.",
    )  # fmt: skip
    return figure
