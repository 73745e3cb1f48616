"""Sensitivity ranges: results of runs with perturbed latencies, compute gaps, seeds (docs/explanation/sensitivity.md).

In a short run a few cycles of latency change the order of warps, and the time with it. The ratio of two schemes is
known no better than it varies when both are perturbed alike.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.machine.units import Time

if TYPE_CHECKING:
    from buddysim.machine import Machine
    from buddysim.replay.result import ReplayResult

KINDS = ("latency", "compute-gaps", "seed")
NONE, AUTO, ALL = "none", "auto", "all"
#: `AUTO` is `ALL` for runs of at most so many memory instructions, else `NONE`.
MAX_INSTRUCTIONS = 4_000_000
MAX_RUNS = 8
REPORT_EVERY_S = 0.2

#: In place of a factor whose range contains 1.
NO_DIFFERENCE = "no difference that this trace can tell"

Progress = Callable[[int, int], None]
RunChanged = Callable[["Perturbation", Progress], "ReplayResult"]

_LATENCIES = ("l1", "l2", "dram", "link")  # sections whose `load_to_use` is perturbed
#: The changes of l1, l2, dram, link and compute gaps in millionths, and what is added to the seed. They are selected
#: among random ones, so that the ranges of the traces in `traces/` hold (`tools.sensitivity_changes`). Six runs take
#: the first six.
_CHANGES = (
    (+2552, -4117, -12154, +20351, -21936, 2097),
    (-15922, +10991, +21818, +5332, +495, 3164),
    (+3834, -15584, -21355, +11971, -23669, 1113),
    (+17279, +22274, +15115, -14919, +12130, 1126),
    (-3777, +17930, -13478, +19937, +17152, 1184),
    (-2261, +4833, +3013, +7935, -4967, 3177),
    (-9320, +7200, +6308, +20580, -20966, 1153),
    (-1441, +1959, -19000, +23071, -10357, 1056),
)
#: Spans of the changed ratios in the width of a range.
_OF_SPAN = 1.38
HALF, DOUBLE = Fraction(1, 2), Fraction(2)


@dataclass(frozen=True)
class Perturbation:
    """Changes of one perturbed run; compared schemes are perturbed alike.

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
        for part, contained, more in (("l2", "l1", 0), ("dram", "l2", machine.first_data_ps), ("link", "l2", 0)):
            if ps[part] < ps[contained] + more:
                ps[part] = Fraction(-(-(ps[contained] + more) // 1))
                times[part] = Time(ps[part], "ps")
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
    for *millionths, added_seed in _CHANGES[: MAX_RUNS - len(halved)]:
        *factors, gap = (1 + Fraction(change, 1_000_000) for change in millionths)
        small.append(
            Perturbation(
                tuple(factors) if latency else UNCHANGED.latencies,
                gap if gaps else UNCHANGED.gaps,
                added_seed if seed else UNCHANGED.seed,
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
    """Return the range in which a ratio mostly lies after another such change.

    It is from the least to the largest logarithm, widened alike at both ends to `_OF_SPAN` times this span: about 4.1
    standard deviations of a normal distribution.

    Parameters
    ----------
    value : of the unchanged run, above 0
    changed : of the perturbed runs, at most `MAX_RUNS`
    """
    least, most = min([value, *changed]), max([value, *changed])
    if least == most:
        return value, value
    more = math.exp((_OF_SPAN - 1) * math.log(most / least) / 2)
    return least / more, most * more


def tells_no_difference(result: Mapping[str, Any]) -> bool:
    """Return whether the range of a slowdown contains 1; `result` is what `ReplayResult.to_dict` gives."""
    low, high = result.get("slowdown.min"), result.get("slowdown.max")
    return low is not None and high is not None and bool(low <= 1 <= high)


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
