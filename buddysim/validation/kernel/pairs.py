"""Pairs of measured and replayed kernels, and which of them are compared (docs/validation/method.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from statistics import fmean, median

from buddysim.validation.comparison import Value
from buddysim.validation.correlation import log_correlation
from buddysim.validation.kernel.counter_data import COUNTERS, KernelCounters, MeasuredKernel
from buddysim.validation.kernel.replays import COLUMNS, KernelReplay

MAX_REQUEST_ERROR = 0.01
POINT_COLUMNS = (*COLUMNS, "not_compared", *(f"measured_{name}" for name in COUNTERS), "accelsim_cycles")


@dataclass(frozen=True)
class KernelPair:
    """A measured kernel and its replay."""

    measured: MeasuredKernel
    replay: KernelReplay

    @property
    def program(self) -> str:
        return self.measured.program

    @property
    def why_not(self) -> str:
        """Why the kernel is not compared; empty if it is compared."""
        gpu, replay = self.measured, self.replay
        if (replay.grid, replay.block) != (gpu.grid, gpu.block):
            return f"launched as {replay.grid} blocks of {replay.block}, on the GPU {gpu.grid} of {gpu.block}"
        for name in ("read_requests", "write_requests"):
            simulated, measured = getattr(replay.counters, name), getattr(gpu.counters, name)
            if abs(simulated - measured) > MAX_REQUEST_ERROR * measured:
                return f"{name.replace('_', ' ')}: {simulated:,.0f}, on the GPU {measured:,.0f}"
        return ""

    @property
    def row(self) -> tuple[Value, ...]:
        """A value for each of `POINT_COLUMNS`."""
        return (*self.replay.row, self.why_not, *astuple(self.measured.counters), self.measured.accelsim_cycles)


def pair_kernels(measured: Mapping[str, Sequence[MeasuredKernel]], replays: Iterable[KernelReplay]) -> list[KernelPair]:
    """Pair the n-th launch of each capture with the n-th measured kernel of its program."""
    return [
        KernelPair(measured[replay.program][replay.number], replay)
        for replay in replays
        if replay.number < len(measured.get(replay.program, ()))
    ]


@dataclass(frozen=True)
class QuantityErrors:
    """One quantity of one simulator and the measured one, kernel by kernel.

    Attributes
    ----------
    points : program, simulated value and measured value of each kernel
    """

    points: Sequence[tuple[str, float, float]]

    @property
    def errors(self) -> list[tuple[str, float]]:
        """Program and |simulated / measured - 1| of each kernel whose measured value is not 0."""
        return [(program, abs(simulated / measured - 1)) for program, simulated, measured in self.points if measured]

    @property
    def median(self) -> float:
        return median(error for _, error in self.errors)

    @property
    def mean(self) -> float:
        return fmean(error for _, error in self.errors)

    @property
    def mean_of_program_medians(self) -> float:
        """The mean over programs of each program's median error."""
        return fmean(median(errors) for errors in errors_by_program(self.errors).values())

    @property
    def totals(self) -> float:
        """The mean over programs of the error of the sum over the program's kernels."""
        sums: dict[str, tuple[float, float]] = {}
        for program, simulated, measured in self.points:
            before = sums.get(program, (0.0, 0.0))
            sums[program] = before[0] + simulated, before[1] + measured
        return fmean(abs(simulated / measured - 1) for simulated, measured in sums.values())

    @property
    def log_correlation(self) -> float:
        """Pearson correlation of the logarithms; 1 for fewer than two kernels."""
        return log_correlation([(simulated, measured) for _, simulated, measured in self.points])


def errors_by_program(errors: Iterable[tuple[str, float]]) -> dict[str, list[float]]:
    """Group errors by program."""
    by_program: dict[str, list[float]] = {}
    for program, error in errors:
        by_program.setdefault(program, []).append(error)
    return by_program


def quantity_errors(pairs: Iterable[KernelPair], quantity: str) -> QuantityErrors:
    """Return a quantity of the replays: an attribute of `KernelCounters`."""
    return QuantityErrors(
        [(p.program, _value(p.replay.counters, quantity), _value(p.measured.counters, quantity)) for p in pairs]
    )


def accelsim_errors(pairs: Iterable[KernelPair]) -> QuantityErrors:
    """Return Accel-Sim's cycles of the same kernels."""
    return QuantityErrors([(p.program, p.measured.accelsim_cycles, p.measured.counters.cycles) for p in pairs])


def _value(counters: KernelCounters, quantity: str) -> float:
    return float(getattr(counters, quantity))
