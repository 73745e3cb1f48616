"""The CSWAP paper's codec times: Fig. 5, its time model (Fig. 10), its search for launches (Fig. 12)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from buddysim.compress.zvc import fraction_of_density
from buddysim.gpu_codecs import LAYOUTS
from buddysim.gpu_codecs.launch_search import LaunchSearchResult, bayesian, expert, random, whole_grid
from buddysim.gpu_codecs.opencl_device import LaunchShape
from buddysim.gpu_codecs.paper_times import BYTES, POINTS, PaperTimes
from buddysim.gpu_codecs.regressors import regressions
from buddysim.gpu_codecs.samples import CHECKS, CodecSample, read_samples
from buddysim.gpu_codecs.time_model import (
    CodecTiming,
    Fit,
    fit_bandwidth,
    fit_linear,
    relative_absolute_error,
)
from buddysim.gpu_codecs.times import CodecTimeTable, codec_times, shipped_samples
from buddysim.machine.training import TrainingMachine
from buddysim.papers.cswap.iterations import decisions
from buddysim.papers.cswap.paper_networks import CASES, V100

CODEC = "zvc"
SPARSITY = 0.5
PAPER = "paper"
CURVES = (*LAYOUTS, PAPER)
#: Sizes that models are fitted to; larger ones lie beyond.
FITTED_MIB = (8, 12, 16, 20, 24, 28, 32)
FITTED_SPARSITIES = tuple(percent / 100 for percent in range(20, 81, 3))
SUB_MODELS = (1, 2, 3, 4, 6)
SEEDS = range(5)
_MIB = 2**20


def times(curve: str, machine: str = V100, codec: str = CODEC) -> CodecTimeTable:
    """Times of the simulated kernels in a layout, or through the paper's three points."""
    return PaperTimes() if curve == PAPER else codec_times(machine, codec, curve)


def best_both_ways(codec: str, layout: str, machine: str = V100) -> CodecSample:
    """Return a codec at its best launch: 500 MB, half of it zeros, compression and decompression."""
    table = times(layout, machine, codec)
    return table.sample_at(BYTES, SPARSITY, table.best_launch(BYTES, SPARSITY))


def bandwidth_ms(machine: str = V100) -> float:
    """Bytes over memory bandwidth: 500 MB and its ZVC code, each read once and written once."""
    moved = 2 * BYTES * (1 + fraction_of_density(1 - SPARSITY))
    return 1e3 * moved / TrainingMachine.load(machine).dram_bytes_per_s


def fig5_ms(curve: str, grid: int, block: int = 64, machine: str = V100) -> float:
    """Milliseconds of compression and decompression of 500 MB, half of it zeros."""
    return times(curve, machine).sample_at(BYTES, SPARSITY, LaunchShape(grid, block)).total_ps / 1e9


def grids() -> list[int]:
    """Grids that were simulated, and the paper's."""
    return sorted({sample.grid for sample in shipped_samples()} | set(POINTS))


def linearity() -> list[CodecSample]:
    """The samples that show how times grow with the size, at 50 % zeros, work-groups of 64, on a V100."""
    return [
        sample
        for sample in shipped_samples()
        if (sample.machine, sample.codec, sample.sparsity, sample.block) == (V100, CODEC, SPARSITY, 64)
    ]


def held_out(layout: str, direction: str, beyond: bool) -> list[CodecTiming]:
    """Simulated tensors whose sparsity no fit saw, within the fitted sizes or larger."""
    own = [s for s in shipped_samples() if (s.machine, s.codec, s.layout) == (V100, CODEC, layout)]
    known = {sample.sparsity for sample in own if sample.byte_count == 8 * _MIB}
    return [
        _row(sample, direction)
        for sample in own
        if sample.grid == 197
        and (sample.sparsity not in known or (beyond and sample.byte_count > FITTED_MIB[-1] * _MIB))
        and (sample.byte_count > FITTED_MIB[-1] * _MIB) == beyond
    ]


def _row(sample: CodecSample, direction: str) -> CodecTiming:
    time_ps = sample.compress_ps if direction == "compression" else sample.decode_ps
    return CodecTiming(sample.byte_count, sample.sparsity, time_ps)


@cache
def _fitted_rows(layout: str, direction: str) -> tuple[CodecTiming, ...]:
    table, launch = codec_times(V100, CODEC, layout), LaunchShape(197, 64)
    return tuple(
        _row(table.sample_at(size * _MIB, sparsity, launch), direction)
        for size in FITTED_MIB
        for sparsity in FITTED_SPARSITIES
    )


def fits() -> dict[str, Fit]:
    """The models of Fig. 10, linear regression by number of sub-models, and the baseline to beat."""
    linear: dict[str, Fit] = {f"LR {n}": lambda rows, n=n: fit_linear(rows, n) for n in SUB_MODELS}  # type: ignore[misc]
    return {**linear, **regressions(), "bytes / bandwidth": fit_bandwidth}


@cache
def errors(layout: str) -> dict[str, dict[str, float]]:
    """RAE in per cent, mean of both directions, ``within`` and ``beyond`` the fitted sizes, by model."""
    by_model: dict[str, dict[str, float]] = {}
    for name, fit in fits().items():
        sums = {"within": 0.0, "beyond": 0.0}
        for direction in ("compression", "decompression"):
            model = fit(_fitted_rows(layout, direction))
            for where in sums:
                rows = held_out(layout, direction, where == "beyond")
                sums[where] += 50 * relative_absolute_error(model, rows)
        by_model[name] = sums
    return by_model


@cache
def _tensors() -> tuple[tuple[int, float], ...]:
    return tuple((one.byte_count, one.sparsity) for one in decisions(CASES[2], "VGG16"))


@cache
def iteration_ms(curve: str, launch: LaunchShape) -> float:
    """(De)compression of all of VGG16's (128) candidates: the objective of every search."""
    table = times(curve)
    return sum(table.sample_at(size, sparsity, launch).total_ps for size, sparsity in _tensors()) / 1e9


@cache
def searches(curve: str) -> dict[str, list[LaunchSearchResult]]:
    """Return the result of each search, by seed if it is random."""

    def objective(launch: LaunchShape) -> float:
        return iteration_ms(curve, launch)

    return {
        "random": [random(objective, seed) for seed in SEEDS],
        "expert": [expert(objective)],
        "BO": [bayesian(objective, seed) for seed in SEEDS],
        "grid": [whole_grid(objective)],
    }


@dataclass(frozen=True)
class CodecCheck:
    """Time in the table and by direct simulation of a search's launch; milliseconds, both directions."""

    layout: str
    search: str
    launch: LaunchShape
    byte_count: int
    table_ms: float
    direct_ms: float


def checks() -> list[CodecCheck]:
    """The searches' launches on a V100, with each tensor that they were simulated with."""
    direct = [s for s in (*read_samples(str(CHECKS)), *shipped_samples()) if s.origin == "simulated"]
    alike = [s for s in direct if (s.machine, s.codec, s.sparsity) == (V100, CODEC, SPARSITY)]
    return [
        CodecCheck(layout, search, launch, s.byte_count, predicted.total_ps / 1e9, s.total_ps / 1e9)
        for layout in LAYOUTS
        for search, results in searches(layout).items()
        for launch in dict.fromkeys(one.launch for one in results)
        for s in alike
        if (s.layout, s.grid, s.block) == (layout, launch.grid, launch.block)
        for predicted in [times(layout).sample_at(s.byte_count, SPARSITY, launch)]
    ]


def check_text() -> str:
    """Return the table's error at the searches' results, for captions."""
    differing = [one for one in checks() if one.table_ms != one.direct_ms]
    worst = {
        layout: max(abs(c.table_ms / c.direct_ms - 1) for c in differing if c.layout == layout) for layout in LAYOUTS
    }
    return "; ".join(f"{layout} within {100 * off:.1f} %" for layout, off in worst.items())
