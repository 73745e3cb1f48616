"""Choose the eight changes of the sensitivity range: `python -m tools.sensitivity_changes OUT`.

OUT/candidates.json and OUT/targets.json are what `python -m tools.sensitivity_coverage --changes candidates --draws 120
--times OUT/candidates.json` keeps, and the same with `targets` and 200 draws. The search exchanges changes among the
candidates, so that the ranges of all traces meet both conditions of that tool for the changes of both files with the
largest margin. It prints the rows of `buddysim.replay.sensitivity`.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from buddysim.replay.scheme_results import slowdown_range
from buddysim.replay.schemes import BASELINE
from buddysim.replay.sensitivity import MAX_RUNS
from tools.sensitivity_coverage import MAX_WIDTH, MIN_COVERAGE, random_changes

#: A range may lose so many of its width at each end and still cover enough: its margin.
_MARGINS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.15)
_SOFT = 0.04


Times = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A trace and a scheme.

    Attributes
    ----------
    unchanged : slowdown of the unchanged run
    slowdowns : of each candidate
    ordered : of each candidate and target, sorted
    runs : number of changes that `run` makes of this trace
    """

    unchanged: float
    slowdowns: Sequence[float]
    ordered: Sequence[float]
    runs: int

    def margin(self, selected: Sequence[int]) -> float:
        """How far the range is from failing, in widths of the central 95 %; below 0 if it fails."""
        low, high = slowdown_range(self.unchanged, [self.slowdowns[number] for number in selected[: self.runs]])
        cut = len(self.ordered) // 40
        central = (self.ordered[-1 - cut] - self.ordered[cut]) or 1e-12
        best = -1.0
        for margin in _MARGINS:
            start = bisect_left(self.ordered, low + margin * central)
            inside = (bisect_right(self.ordered, high - margin * central) - start) / len(self.ordered)
            if inside < MIN_COVERAGE:
                best = max(best, 2 * (inside - MIN_COVERAGE)) if margin == 0 else best
                break
            best = 2 * margin
        return min(best, MAX_WIDTH - (high - low) / central)


def cases_of(candidates: Times, targets: Times) -> list[Case]:
    """Return the traces and schemes whose slowdown changes.

    Parameters
    ----------
    candidates, targets : by trace, what `sensitivity_coverage.measure` gives for these changes
    """
    cases = []
    for trace, measured in candidates.items():
        for scheme in measured["times"]:
            ratios = _ratios(measured, scheme)
            unchanged, slowdowns = ratios[0], ratios[measured["own"] :]
            more = _ratios(targets[trace], scheme)[targets[trace]["own"] :] if trace in targets else []
            if len(set(slowdowns)) > 1:
                cases.append(Case(unchanged, slowdowns, sorted([*slowdowns, *more]), measured["own"] - 1))
    return cases


def _ratios(measured: dict[str, Any], scheme: str) -> list[float]:
    return [one / base for one, base in zip(measured["times"][scheme], measured["times"][BASELINE], strict=True)]


def worth(cases: Sequence[Case], selected: Sequence[int]) -> float:
    """The least margin, made smooth: what every case adds counts."""
    return -_SOFT * math.log(sum(math.exp(-case.margin(selected) / _SOFT) for case in cases))


def search(cases: Sequence[Case], steps: int, seed: int) -> tuple[float, list[int]]:
    """Simulated annealing: exchange one of the eight changes for another candidate, or two of them for each other.

    Returns
    -------
    the worth of the best choice, and its candidates in order
    """
    draw = random.Random(seed)
    candidates = min(len(case.slowdowns) for case in cases)
    selected = draw.sample(range(candidates), MAX_RUNS)
    before = worth(cases, selected)
    best = before, selected
    for step in range(steps):
        other = [*selected]
        slot, second = draw.sample(range(MAX_RUNS), 2)
        if draw.random() < 0.25:
            other[slot], other[second] = other[second], other[slot]
        else:
            other[slot] = draw.choice([number for number in range(candidates) if number not in selected])
        after = worth(cases, other)
        heat = 0.05 * (1 - step / steps) + 1e-4
        if after > before or draw.random() < math.exp((after - before) / heat):
            before, selected = after, other
            best = max(best, (before, selected))
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", metavar="OUT", type=Path, help="folder of candidates.json and targets.json")
    parser.add_argument("--steps", type=int, default=15_000, help="exchanges of each search (default: %(default)s)")
    parser.add_argument("--searches", type=int, default=32, help="searches, of which the best counts (%(default)s)")
    args = parser.parse_args()
    cases = cases_of(*(json.loads((args.out / f"{name}.json").read_text()) for name in ("candidates", "targets")))
    value, selected = max(search(cases, args.steps, seed) for seed in range(args.searches))
    changes = random_changes(min(len(case.slowdowns) for case in cases), "candidates", synthetic_sizes=True)
    print(f"# {len(cases)} cases, worth {value:.3f}, least margin {min(case.margin(selected) for case in cases):.3f}")
    for number in selected:
        change = changes[number]
        row = [round((factor - 1) * 1_000_000) for factor in (*change.latencies, change.gaps)]
        print(f"    ({', '.join(f'{millionths:+}' for millionths in row)}, {change.seed}),")
    return 0


if __name__ == "__main__":
    sys.exit(main())
