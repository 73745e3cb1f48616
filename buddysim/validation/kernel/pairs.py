"""Replayed kernels beside measured ones, and which of them are compared (docs/validation-rules.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from statistics import fmean, median

from buddysim.validation.comparison import Value
from buddysim.validation.correlation import log_correlation
from buddysim.validation.kernel.counter_data import COUNTERS, KernelCounters, MeasuredKernel
from buddysim.validation.kernel.replays import COLUMNS, KernelReplay

SAME = 0.01
POINT_COLUMNS = (*COLUMNS, "not_compared", *(f"measured_{name}" for name in COUNTERS), "accelsim_cycles")


@dataclass(frozen=True)
class KernelPair:
    """A kernel, measured and replayed."""

    measured: MeasuredKernel
    replay: KernelReplay

    @property
    def program(self) -> str:
        return self.measured.program

    @property
    def why_not(self) -> str:
        """Why the kernel is not compared; empty where it is."""
        theirs, ours = self.measured, self.replay
        if (ours.grid, ours.block) != (theirs.grid, theirs.block):
            return f"launched as {ours.grid} blocks of {ours.block}, there {theirs.grid} of {theirs.block}"
        for what in ("read_requests", "write_requests"):
            mine, counted = getattr(ours.counts, what), getattr(theirs.counts, what)
            if abs(mine - counted) > SAME * counted:
                return f"{what.replace('_', ' ')}: {mine:,.0f}, there {counted:,.0f}"
        return ""

    @property
    def row(self) -> tuple[Value, ...]:
        """A value for each of `POINT_COLUMNS`."""
        return (*self.replay.row, self.why_not, *astuple(self.measured.counts), self.measured.accelsim_cycles)


def pair_kernels(measured: Mapping[str, Sequence[MeasuredKernel]], replays: Iterable[KernelReplay]) -> list[KernelPair]:
    """The n-th launch of a capture is the n-th measured kernel of its program."""
    return [
        KernelPair(measured[one.program][one.number], one)
        for one in replays
        if one.number < len(measured.get(one.program, ()))
    ]


@dataclass(frozen=True)
class QuantityErrors:
    """One quantity of one simulator beside the measured one, kernel by kernel: program, simulated, measured."""

    points: Sequence[tuple[str, float, float]]

    @property
    def errors(self) -> list[tuple[str, float]]:
        """|simulated / measured - 1| of each kernel that has any."""
        return [(program, abs(ours / theirs - 1)) for program, ours, theirs in self.points if theirs]

    @property
    def median(self) -> float:
        return median(error for _, error in self.errors)

    @property
    def mean(self) -> float:
        return fmean(error for _, error in self.errors)

    @property
    def of_programs(self) -> float:
        """The mean over programs of each program's median error."""
        return fmean(median(errors) for errors in grouped(self.errors).values())

    @property
    def totals(self) -> float:
        """The mean over programs of the error of the program's sum."""
        sums: dict[str, tuple[float, float]] = {}
        for program, ours, theirs in self.points:
            before = sums.get(program, (0.0, 0.0))
            sums[program] = before[0] + ours, before[1] + theirs
        return fmean(abs(ours / theirs - 1) for ours, theirs in sums.values())

    @property
    def log_correlation(self) -> float:
        """Pearson's, of the logarithms; 1 for fewer than two kernels."""
        return log_correlation([(ours, theirs) for _, ours, theirs in self.points])


def grouped(errors: Iterable[tuple[str, float]]) -> dict[str, list[float]]:
    """Errors by program."""
    found: dict[str, list[float]] = {}
    for program, error in errors:
        found.setdefault(program, []).append(error)
    return found


def quantity_errors(pairs: Iterable[KernelPair], quantity: str) -> QuantityErrors:
    """A quantity of the replays: an attribute of `KernelCounters`."""
    return QuantityErrors(
        [(p.program, _of(p.replay.counts, quantity), _of(p.measured.counts, quantity)) for p in pairs]
    )


def accelsim_errors(pairs: Iterable[KernelPair]) -> QuantityErrors:
    """Accel-Sim's cycles of the same kernels."""
    return QuantityErrors([(p.program, p.measured.accelsim_cycles, p.measured.counts.cycles) for p in pairs])


def _of(counts: KernelCounters, quantity: str) -> float:
    return float(getattr(counts, quantity))
