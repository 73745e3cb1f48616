"""How far a result moves with changes too small to be right or wrong: bands for ratios (docs/model.md, Sensitivity).

In a short run a few cycles of latency move one wave of warps past another, and the time with it. Schemes that are
changed alike move apart by as much as their ratio can't be trusted.
"""

from __future__ import annotations

import os
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
#: `AUTO` is `ALL` for runs of at most that many memory instructions, else `NONE`.
MAX_INSTRUCTIONS = 4_000_000
MAX_RUNS = 8
REPORT_EVERY_S = 0.2

Progress = Callable[[int, int], None]
RunChanged = Callable[["Perturbation", Progress], ReplayResult]

_STEP = Fraction(1, 40)
_LATENCIES = ("l1", "l2", "dram", "link")  # each one's `load_to_use`
#: A two-level design of eight runs, in pairs of opposite latencies: each of l1, l2, dram, link and gaps is up in four.
_SIGNS = (
    (+1, +1, +1, +1, +1),
    (-1, -1, -1, -1, +1),
    (+1, -1, +1, -1, -1),
    (-1, +1, -1, +1, -1),
    (+1, -1, -1, +1, -1),
    (-1, +1, +1, -1, -1),
    (+1, +1, -1, -1, +1),
    (-1, -1, +1, +1, +1),
)
HALF, DOUBLE = Fraction(1, 2), Fraction(2)


@dataclass(frozen=True)
class Perturbation:
    """What one further run changes; schemes that are compared are changed alike.

    Attributes
    ----------
    latencies : factors on `load_to_use` of L1, L2, device memory and link
    gaps : factor on the gaps of the trace
    seed : what is added to the seed of drawn sizes
    """

    latencies: tuple[Fraction, ...] = (Fraction(1),) * len(_LATENCIES)
    gaps: Fraction = Fraction(1)
    seed: int = 0

    def of(self, machine: Machine) -> Machine:
        """The machine with these latencies, none shorter than what it contains: a hit in the L2 the one in the L1."""
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
    """The further runs of a result.

    Attributes
    ----------
    asked : what the caller asked for
    kinds : what is changed, of `KINDS`
    small : the small changes, at most `MAX_RUNS` with those of `gaps`
    gaps : gaps halved and doubled, where the trace had to assume them
    """

    asked: str = NONE
    kinds: tuple[str, ...] = ()
    small: tuple[Perturbation, ...] = ()
    gaps: tuple[Perturbation, ...] = ()

    @property
    def changes(self) -> tuple[Perturbation, ...]:
        """All of them."""
        return (*self.small, *self.gaps)


def plan_runs(asked: str, *, instructions: int, assumed_gaps: bool, drawn_sizes: bool) -> SensitivityRuns:
    """The further runs of a result.

    Parameters
    ----------
    asked : ``none``, ``auto``, ``all``, or some of `KINDS` with commas between
    instructions : memory instructions of one run
    assumed_gaps : whether the trace had to assume its gaps
    drawn_sizes : whether sizes of entries are drawn from a distribution

    Raises
    ------
    BuddysimError : an unknown word
    """
    kinds = _kinds(asked)
    if asked == AUTO and instructions > MAX_INSTRUCTIONS:
        kinds = ()
    latency, gaps, seed = (kind in kinds for kind in KINDS)
    seed = seed and drawn_sizes
    halved = (Perturbation(gaps=HALF), Perturbation(gaps=DOUBLE)) if gaps and assumed_gaps else ()
    small = []
    for number, signs in enumerate(_SIGNS[: MAX_RUNS - len(halved)], 1):
        *factors, gap = (1 + sign * _STEP for sign in signs)
        small.append(
            Perturbation(
                tuple(factors) if latency else UNCHANGED.latencies,
                gap if gaps else UNCHANGED.gaps,
                number if seed else UNCHANGED.seed,
            )
        )
    different = (change for change in dict.fromkeys(small) if change != UNCHANGED)
    return SensitivityRuns(asked, kinds, tuple(different), halved)


def _kinds(asked: str) -> tuple[str, ...]:
    if asked in (AUTO, ALL):
        return KINDS
    if asked == NONE:
        return ()
    words = (*KINDS, NONE, AUTO, ALL)
    chosen = [word.strip() for word in asked.split(",")] if isinstance(asked, str) else [asked]
    for word in chosen:
        if word not in KINDS:
            raise BuddysimError(
                f"sensitivity {shortened(asked)}: {shortened(word)}: expected {NONE}, {AUTO}, {ALL}, or some of "
                f"{', '.join(KINDS)}{hint(str(word), words)}"
            )
    return tuple(kind for kind in KINDS if kind in chosen)


def run_all(
    changes: Sequence[Perturbation], run_one: RunChanged, progress: Callable[[int], None]
) -> list[ReplayResult]:
    """The results of changed runs, which go on in threads, one per processor.

    Parameters
    ----------
    changes : of each run
    run_one : makes one, reporting to the progress function that it gets
    progress : called with the memory instructions that all of them have done together
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


def summarize_runs(chosen: SensitivityRuns, results: Sequence[ReplayResult]) -> dict[str, Any]:
    """What a result keeps of its changed runs: its `sensitivity`.

    Parameters
    ----------
    chosen : the plan
    results : of its changes, in their order
    """
    times = [int(result.counters["time_ps"]) for result in results]
    small = len(chosen.small)
    half, double = times[small:] or (None, None)
    return {
        "time_ps": times[:small],
        "compression_ratio": [result.counters["compression.ratio"] for result in results[:small]],
        "half_compute_gaps_time_ps": half,
        "double_compute_gaps_time_ps": double,
    }


def describe_runs(
    chosen: SensitivityRuns, results: Sequence[ReplayResult], machines: Sequence[Machine]
) -> dict[str, Any]:
    """The provenance of a result's changed runs: what `simulate` makes each of them again with.

    Parameters
    ----------
    chosen, results : as of `summarize_runs`
    machines : on which they ran
    """
    runs = [
        {
            "settings": {f"{part}.load_to_use": machine.text(f"{part}.load_to_use") for part in _LATENCIES},
            "compute_gap_scale": result.provenance["compute_gap_scale"],
            "seed": result.provenance["seed"],
        }
        for result, machine in zip(results, machines, strict=True)
    ]
    return {"requested": chosen.asked, "kinds": list(chosen.kinds), "runs": runs}
