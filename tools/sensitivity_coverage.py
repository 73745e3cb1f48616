"""Compare the sensitivity ranges of traces with random changes: `python -m tools.sensitivity_coverage [TRACE ...]`.

Each latency, the compute gaps and the seed change together, at random and independently, by up to 2.5 %, for all
schemes alike. For each trace and scheme the tool prints how many of the changed speedups lie in the range that `run`
shows, and the width of the range over that of the central 95 % of them. It fails if fewer than 95 % lie in a range, or
if one is wider than 1.5. Unless they are named, traces are left out for which `run` makes no range: those without
kernels, and those of over 4 million memory instructions.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from buddysim.base.output import write_text
from buddysim.base.textfile import parse_json
from buddysim.machine import Machine
from buddysim.replay.request import ReplayRequest
from buddysim.replay.scheme_results import slowdown_range
from buddysim.replay.schemes import BASELINE
from buddysim.replay.sensitivity import ALL, AUTO, UNCHANGED, Perturbation, run_all
from buddysim.replay.simulation import OpenTraces, Simulation
from buddysim.report.progress import progress_line

ROOT = Path(__file__).parents[1]
SCHEMES = ("bandwidth-compression", "buddy")
DRAWS = 200
MIN_COVERAGE, MAX_WIDTH = 0.95, 1.5
#: Slowdowns that differ by less are printed alike: half of it counts as inside, and no range is narrower.
RESOLUTION = 1e-4
#: Sets of random changes: the seed of the generator and the first seed of sizes. `tools.sensitivity_changes` selects
#: by the times of the first three; the check is of none.
CHECK = "check"
SETS = {"first": ("fresh", 2000), "second": ("check", 1000), "third": ("check 2", 3000), CHECK: ("check 3", 4000)}

Show = Callable[[str], None]


@dataclass(frozen=True)
class Coverage:
    """How a range compares with random changes.

    Attributes
    ----------
    low, high : the range, of slowdowns
    central : the central 95 % of the changed slowdowns
    inside : fraction of the changed slowdowns that lie in the range
    width : of the range over that of the central 95 %
    """

    low: float
    high: float
    central: tuple[float, float]
    inside: float
    width: float

    @property
    def fails(self) -> bool:
        return self.inside < MIN_COVERAGE or self.width > MAX_WIDTH


def random_changes(draws: int, name: str = CHECK, *, synthetic_sizes: bool) -> list[Perturbation]:
    """Random changes of everything within 2.5 %, the same for all traces; seeds of sizes differ from change to change.

    Parameters
    ----------
    draws : number of changes
    name : of their set, of `SETS`
    synthetic_sizes : whether seeds of sizes change too
    """
    seed, first = SETS[name]
    draw = random.Random(seed)

    def factor() -> Fraction:
        return 1 + Fraction(draw.randrange(-25_000, 25_001), 1_000_000)

    changes = []
    for number in range(draws):
        factors = tuple(factor() for _ in range(4))
        changes.append(Perturbation(factors, factor(), first + number if synthetic_sizes else 0))
    return changes


def times(
    simulation: Simulation, machine: Machine, scheme: str, changes: Sequence[Perturbation], show: Show
) -> list[int]:
    """Simulated time under each change (ps)."""
    total = len(changes) * simulation.memory_instructions
    results = run_all(
        changes,
        lambda change, report: simulation._run(change.of(machine), scheme, change, report, None),
        lambda done: show(f"{len(changes)} runs of {scheme}: {100 * done / total:.0f} %"),
    )
    return [int(result.counters["time_ps"]) for result in results]


def measure(
    path: Path,
    machine: Machine,
    draws: int,
    names: Sequence[str],
    schemes: Sequence[str],
    kinds: str = ALL,
    show: Show = lambda text: None,
) -> dict[str, Any] | None:
    """Times of a trace by scheme: unchanged, with the changes that `run` makes, and with random ones.

    Parameters
    ----------
    draws : number of changes of each set
    names : of sets
    kinds : what `run --sensitivity` takes; None is returned where it makes no range
    show : called with the progress
    """

    def named(text: str) -> None:
        show(f"{path.stem}: {text}")

    with OpenTraces() as files:
        simulation = Simulation(files, ReplayRequest(path, machine))
        plan = simulation.plan(kinds)
        if not plan.small or not simulation.memory_instructions:
            return None
        synthetic = any(change.seed for change in plan.small)
        changes = [UNCHANGED, *plan.small]
        for name in names:
            changes += random_changes(draws, name, synthetic_sizes=synthetic)
        own = 1 + len(plan.small)
        by_scheme = {scheme: times(simulation, machine, scheme, changes, named) for scheme in (BASELINE, *schemes)}
    return {"own": own, "times": by_scheme}


def coverage(ratios: Sequence[float], own: int) -> Coverage:
    """Return how the range of the first ratios compares with the others.

    Parameters
    ----------
    ratios : slowdowns: unchanged, with the changes that `run` makes, and with random ones
    own : number of slowdowns before the random ones
    """
    low, high = slowdown_range(ratios[0], ratios[1:own])
    changed = sorted(ratios[own:])
    cut = len(changed) // 40
    central = changed[cut], changed[len(changed) - 1 - cut]
    inside = sum(low - RESOLUTION / 2 <= ratio <= high + RESOLUTION / 2 for ratio in changed) / len(changed)
    wide, needed = (max(RESOLUTION, ends[1] - ends[0]) for ends in ((low, high), central))
    return Coverage(low, high, central, inside, wide / needed)


def compare(measured: dict[str, Any]) -> dict[str, Coverage]:
    """Return the coverage of each scheme's range.

    Parameters
    ----------
    measured : what `measure` gives
    """
    by_scheme = measured["times"]
    return {
        scheme: coverage(
            [one / base for one, base in zip(by_scheme[scheme], by_scheme[BASELINE], strict=True)], measured["own"]
        )
        for scheme in by_scheme
        if scheme != BASELINE
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", metavar="TRACE", type=Path, nargs="*", help="traces (default: all in traces/)")
    parser.add_argument("--machine", default="p100-nvlink2", help="machine (default: %(default)s)")
    parser.add_argument("--scheme", default=",".join(SCHEMES), help="schemes (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=DRAWS, help="random changes of each set (default: %(default)s)")
    parser.add_argument("--changes", default="first", help="sets of random changes (default: %(default)s)")
    parser.add_argument("--times", type=Path, help="a file that keeps the times of traces, so that they run once")
    args = parser.parse_args()
    stored = parse_json(args.times.read_text(), str(args.times)) if args.times and args.times.exists() else {}
    failed = False
    for path in args.traces or sorted((ROOT / "traces").glob("*.bin")):
        if path.stem not in stored:
            names, schemes, kinds = args.changes.split(","), args.scheme.split(","), ALL if args.traces else AUTO
            with progress_line() as show:
                measured = measure(path, Machine.load(args.machine), args.draws, names, schemes, kinds, show)
            if measured is None:
                print(f"{path.stem:20} no range by default", flush=True)
                continue
            stored[path.stem] = measured
            if args.times:
                write_text(args.times, json.dumps(stored))
        for scheme, row in compare(stored[path.stem]).items():
            failed |= row.fails
            print(
                f"{path.stem:20} {scheme:22} {1 / row.high:.4f}x - {1 / row.low:.4f}x  {100 * row.inside:5.1f} % inside"
                f", {row.width:.2f} of the central 95 %{'  FAILS' * row.fails}",
                flush=True,
            )
    return failed


if __name__ == "__main__":
    sys.exit(main())
