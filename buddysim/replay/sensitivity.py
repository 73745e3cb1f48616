"""Sensitivity ranges: results of runs with perturbed latencies, compute gaps, seeds (docs/explanation/sensitivity.md).

In a short run a few cycles of latency change the order of warps, and the time with it. The ratio of two schemes is
known no better than it varies when both are perturbed alike.
"""

from __future__ import annotations

import math
import os
import statistics
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.machine import Machine
from buddysim.machine.units import Time
from buddysim.replay.result import ReplayResult

KINDS = ("latency", "compute-gaps", "seed")
NONE, AUTO, ALL = "none", "auto", "all"
#: `AUTO` is `ALL` for runs of at most so many memory instructions, else `NONE`.
MAX_INSTRUCTIONS = 4_000_000
MAX_RUNS = 8
REPORT_EVERY_S = 0.2

Progress = Callable[[int, int], None]
RunChanged = Callable[["Perturbation", Progress], ReplayResult]

_STEP = Fraction(1, 40)
_LATENCIES = ("l1", "l2", "dram", "link")  # sections whose `load_to_use` is perturbed
#: The changes of eight runs in eighths of a step, of l1, l2, dram, link and compute gaps, in pairs of opposite ones.
#: Each quantity takes eight values evenly within the step (a Latin hypercube), and latencies change independently, so
#: that the runs vary as much as runs that change at random within the step.
_EIGHTHS = (
    (+7, +1, +3, +5, -7),
    (-7, -1, -3, -5, +7),
    (+5, +3, -1, -7, +3),
    (-5, -3, +1, +7, -3),
    (+3, -5, -7, +1, -1),
    (-3, +5, +7, -1, +1),
    (+1, -7, +5, -3, -5),
    (-1, +7, -5, +3, +5),
)
#: The 97.5 % quantile of Student's distribution, by degrees of freedom from 1 on.
_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306)
HALF, DOUBLE = Fraction(1, 2), Fraction(2)


@dataclass(frozen=True)
class Perturbation:
    """The changes of one perturbed run; schemes that are compared are perturbed alike.

    Attributes
    ----------
    latencies : factors on `load_to_use` of L1, L2, device memory and link
    gaps : factor on compute gaps
    seed : number added to the seed of synthetic sizes
    """

    latencies: tuple[Fraction, ...] = (Fraction(1),) * len(_LATENCIES)
    gaps: Fraction = Fraction(1)
    seed: int = 0

    def of(self, machine: Machine) -> Machine:
        """Return the machine with these latencies, each at least as long as the latencies that it contains."""
        if set(self.latencies) == {1}:
            return machine
        times = {part: getattr(machine, part).load_to_use for part in _LATENCIES}
        for part, factor in zip(_LATENCIES, self.latencies, strict=True):
            times[part] = Time(times[part].amount * factor, times[part].unit)
        ps = {part: machine.exact_ps(time) for part, time in times.items()}
        least = {"l1": ps["l1"], "l2": max(ps["l1"], ps["l2"])}
        least |= {"dram": least["l2"] + machine.first_data_ps, "link": least["l2"]}
        for part in _LATENCIES:
            if ps[part] < least[part]:
                times[part] = Time(Fraction(-(-least[part] // 1)), "ps")
        return machine.with_overrides({f"{part}.load_to_use": str(time) for part, time in times.items()})


UNCHANGED = Perturbation()


@dataclass(frozen=True)
class SensitivityRuns:
    """The perturbed runs of a result.

    Attributes
    ----------
    requested : the argument of the caller
    kinds : the perturbed quantities, of `KINDS`
    small : the small perturbations, at most `MAX_RUNS` together with `gaps`
    gaps : compute gaps halved and doubled, if the trace assumes them
    """

    requested: str = NONE
    kinds: tuple[str, ...] = ()
    small: tuple[Perturbation, ...] = ()
    gaps: tuple[Perturbation, ...] = ()

    @property
    def changes(self) -> tuple[Perturbation, ...]:
        """All perturbations."""
        return (*self.small, *self.gaps)


def plan_runs(requested: str, *, instructions: int, assumed_gaps: bool, synthetic_sizes: bool) -> SensitivityRuns:
    """Return the perturbed runs of a result.

    Parameters
    ----------
    requested : ``none``, ``auto``, ``all``, or some of `KINDS` with commas between
    instructions : memory instructions of one run
    assumed_gaps : whether the trace assumes its compute gaps
    synthetic_sizes : whether sizes of entries are synthetic

    Raises
    ------
    BuddysimError : an unknown word
    """
    kinds = _kinds(requested)
    if requested == AUTO and instructions > MAX_INSTRUCTIONS:
        kinds = ()
    latency, gaps, seed = (kind in kinds for kind in KINDS)
    seed = seed and synthetic_sizes
    halved = (Perturbation(gaps=HALF), Perturbation(gaps=DOUBLE)) if gaps and assumed_gaps else ()
    small = []
    for number, eighths in enumerate(_EIGHTHS[: MAX_RUNS - len(halved)], 1):
        *factors, gap = (1 + Fraction(change, 8) * _STEP for change in eighths)
        small.append(
            Perturbation(
                tuple(factors) if latency else UNCHANGED.latencies,
                gap if gaps else UNCHANGED.gaps,
                number if seed else UNCHANGED.seed,
            )
        )
    different = (change for change in dict.fromkeys(small) if change != UNCHANGED)
    return SensitivityRuns(requested, kinds, tuple(different), halved)


def _kinds(requested: str) -> tuple[str, ...]:
    if requested in (AUTO, ALL):
        return KINDS
    if requested == NONE:
        return ()
    known = (*KINDS, NONE, AUTO, ALL)
    kinds = [word.strip() for word in requested.split(",")] if isinstance(requested, str) else [requested]
    for word in kinds:
        if word not in KINDS:
            raise BuddysimError(
                f"sensitivity {shortened(requested)}: {shortened(word)}: expected {NONE}, {AUTO}, {ALL}, or some of "
                f"{', '.join(KINDS)}{hint(str(word), known)}"
            )
    return tuple(kind for kind in KINDS if kind in kinds)


def prediction_range(value: float, changed: Sequence[float]) -> tuple[float, float]:
    """Return the range in which a ratio lies after another such change, with a probability of 95 %.

    It is the prediction interval of a normal distribution of the ratio's logarithm, and contains `value`.

    Parameters
    ----------
    value : of the unchanged run, above 0
    changed : of the perturbed runs, at most `MAX_RUNS`
    """
    logarithms = [math.log(one) for one in (value, *changed)]
    if len(logarithms) < 2:
        return value, value
    middle = statistics.fmean(logarithms)
    spread = _QUANTILES[len(logarithms) - 2] * statistics.stdev(logarithms) * math.sqrt(1 + 1 / len(logarithms))
    return min(value, math.exp(middle - spread)), max(value, math.exp(middle + spread))


def run_all(
    changes: Sequence[Perturbation], run_one: RunChanged, progress: Callable[[int], None]
) -> list[ReplayResult]:
    """Return the results of perturbed runs, which run in threads, one per processor.

    Parameters
    ----------
    changes : the perturbation of each run
    run_one : simulates one run and reports to a progress function
    progress : called with the memory instructions that all runs have done together
    """
    done = dict.fromkeys(range(len(changes)), 0)
    stopping = threading.Event()

    def one(number: int) -> ReplayResult:
        def report(instructions: int, _: int) -> None:
            done[number] = instructions
            if stopping.is_set():
                raise KeyboardInterrupt

        return run_one(changes[number], report)

    with ThreadPoolExecutor(max_workers=min(len(changes), os.cpu_count() or 1) or 1) as pool:
        futures = [pool.submit(one, number) for number in done]
        try:
            waiting = set(futures)
            while waiting:
                ended, waiting = wait(waiting, timeout=REPORT_EVERY_S, return_when=FIRST_EXCEPTION)
                for future in ended:
                    future.result()
                progress(sum(done.values()))
            return [future.result() for future in futures]
        except BaseException:
            stopping.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def summarize_runs(runs: SensitivityRuns, results: Sequence[ReplayResult]) -> dict[str, Any]:
    """Return the `sensitivity` of a result: times and ratios of its perturbed runs.

    Parameters
    ----------
    runs : the perturbed runs
    results : of these runs, in order
    """
    times = [int(result.counters["time_ps"]) for result in results]
    small = len(runs.small)
    half, double = times[small:] or (None, None)
    return {
        "time_ps": times[:small],
        "compression_ratio": [result.counters["compression.ratio"] for result in results[:small]],
        "half_compute_gaps_time_ps": half,
        "double_compute_gaps_time_ps": double,
    }


def describe_runs(
    runs: SensitivityRuns, results: Sequence[ReplayResult], machines: Sequence[Machine]
) -> dict[str, Any]:
    """Return the provenance of a result's perturbed runs: the arguments of `simulate` that repeat each.

    Parameters
    ----------
    runs, results : as of `summarize_runs`
    machines : the machine of each run
    """
    described = [
        {
            "settings": {f"{part}.load_to_use": machine.text(f"{part}.load_to_use") for part in _LATENCIES},
            "compute_gap_scale": result.provenance["compute_gap_scale"],
            "seed": result.provenance["seed"],
        }
        for result, machine in zip(results, machines, strict=True)
    ]
    return {"requested": runs.requested, "kinds": list(runs.kinds), "runs": described}
