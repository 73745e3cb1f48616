"""Choose the eight changes of the sensitivity range: `python -m tools.sensitivity_changes OUT`.

OUT/candidates.json and OUT/targets.json are what `python -m tools.sensitivity_coverage --changes candidates --times
OUT/candidates.json` keeps, and the same with `targets`. The search exchanges changes among the candidates, so that the
ranges of all traces meet both conditions of that tool for the changes of both files with the largest margin. It prints
the rows of `buddysim.replay.sensitivity`.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from buddysim.replay.schemes import BASELINE
from buddysim.replay.sensitivity import _OF_DEVIATION, _OF_SPAN, MAX_RUNS
from tools.sensitivity_coverage import MAX_WIDTH, MIN_COVERAGE, RESOLUTION, random_changes

Numbers = npt.NDArray[np.float64]
Choices = npt.NDArray[np.int64]

#: A range may lose so many of its width at each end and still cover enough: its margin.
_MARGINS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.15)
_SOFT = 0.02
_WORST = 2.0  # beyond it, all failures are alike


Times = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A trace and a scheme.

    Attributes
    ----------
    unchanged : logarithm of the slowdown of the unchanged run
    slowdowns : those of the candidates, shape (candidates,)
    ordered : those of candidates and targets, sorted
    runs : number of changes that `run` makes of this trace
    """

    unchanged: float
    slowdowns: Numbers
    ordered: Numbers
    runs: int

    def ranges(self, choices: Choices) -> tuple[Numbers, Numbers]:
        """Ends of the ranges of several choices, as `sensitivity.prediction_range` has them.

        Parameters
        ----------
        choices : candidates, shape (choices, MAX_RUNS)
        """
        changed = self.slowdowns[choices[:, : self.runs]]
        every = np.column_stack([np.full(len(choices), self.unchanged), changed])
        low, high = every.min(axis=1), every.max(axis=1)
        more = np.maximum(0, (_OF_SPAN - 1) * (high - low) - _OF_DEVIATION * every.std(axis=1, ddof=1)) / 2
        return low - more, high + more

    def margins(self, choices: Choices) -> Numbers:
        """How far each range is from failing, in widths of the central 95 %; below 0 if it fails."""
        low, high = self.ranges(choices)
        cut = len(self.ordered) // 40
        central = max(RESOLUTION, self.ordered[-1 - cut] - self.ordered[cut])
        best = np.full(len(choices), -1.0)
        holds = np.ones(len(choices), bool)
        for margin in _MARGINS:
            less = margin * central - RESOLUTION / 2
            start = np.searchsorted(self.ordered, low + less, "left")
            inside = (np.searchsorted(self.ordered, high - less, "right") - start) / len(self.ordered)
            if margin == 0:
                best = 2 * (inside - MIN_COVERAGE)
            holds &= inside >= MIN_COVERAGE
            best[holds] = 2 * margin
        return np.maximum(-_WORST, np.minimum(best, MAX_WIDTH - np.maximum(RESOLUTION, high - low) / central))


def cases_of(candidates: Times, targets: Times) -> list[Case]:
    """Return the traces and schemes whose slowdown changes.

    Parameters
    ----------
    candidates, targets : by trace, what `sensitivity_coverage.measure` gives for these changes
    """
    cases = []
    for trace, measured in candidates.items():
        for scheme in measured["times"]:
            ratios = _logarithms(measured, scheme)
            slowdowns = ratios[measured["own"] :]
            more = _logarithms(targets[trace], scheme)[targets[trace]["own"] :] if trace in targets else []
            if len(set(slowdowns)) > 1:
                ordered = np.sort(np.concatenate([slowdowns, more]))
                cases.append(Case(ratios[0], slowdowns, ordered, measured["own"] - 1))
    return cases


def _logarithms(measured: dict[str, Any], scheme: str) -> Numbers:
    times = measured["times"]
    return np.log(np.array(times[scheme], float) / np.array(times[BASELINE], float))


def worth(cases: list[Case], choices: Choices) -> Numbers:
    """The least margin of each choice, made smooth: what every case adds counts."""
    return -_SOFT * np.log(sum(np.exp(-case.margins(choices) / _SOFT) for case in cases))


def exchanged(choice: Choices, candidates: int) -> Choices:
    """All choices with one candidate instead of another one, or two slots exchanged; shape (choices, MAX_RUNS)."""
    others = np.setdiff1d(np.arange(candidates), choice)
    replaced = [np.tile(choice, (len(others), 1)) for _ in range(MAX_RUNS)]
    for slot, choices in enumerate(replaced):
        choices[:, slot] = others
    pairs = [[first, second] for second in range(MAX_RUNS) for first in range(second)]
    swapped = np.tile(choice, (len(pairs), 1))
    for row, pair in enumerate(pairs):
        swapped[row, pair] = swapped[row, pair[::-1]]
    return np.concatenate([*replaced, swapped])


def search(cases: list[Case], seed: int) -> tuple[float, Choices]:
    """Exchange what helps most, from a random choice on, until nothing helps.

    Returns
    -------
    the worth of the choice, and its candidates in order
    """
    candidates = min(len(case.slowdowns) for case in cases)
    choice = np.random.default_rng(seed).permutation(candidates)[:MAX_RUNS]
    value = float(worth(cases, choice[None])[0])
    while True:
        others = exchanged(choice, candidates)
        worths = worth(cases, others)
        best = int(worths.argmax())
        if worths[best] <= value:
            return value, choice
        value, choice = float(worths[best]), others[best]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", metavar="OUT", type=Path, help="folder of candidates.json and targets.json")
    parser.add_argument("--searches", type=int, default=300, help="searches, of which the best counts (%(default)s)")
    args = parser.parse_args()
    cases = cases_of(*(json.loads((args.out / f"{name}.json").read_text()) for name in ("candidates", "targets")))
    value, selected = max((search(cases, seed) for seed in range(args.searches)), key=lambda choice: choice[0])
    changes = random_changes(min(len(case.slowdowns) for case in cases), "candidates", synthetic_sizes=True)
    least = min(float(case.margins(selected[None])[0]) for case in cases)
    print(f"# {len(cases)} cases, worth {value:.3f}, least margin {least:.3f}")
    for number in selected:
        change = changes[number]
        row = [round((factor - 1) * 1_000_000) for factor in (*change.latencies, change.gaps)]
        print(f"    ({', '.join(f'{millionths:+}' for millionths in row)}, {change.seed}),")
    return 0


if __name__ == "__main__":
    sys.exit(main())
