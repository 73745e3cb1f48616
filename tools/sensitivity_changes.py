"""Choose the eight changes of the sensitivity range: `python -m tools.sensitivity_changes OUT`.

OUT/first.json is what `python -m tools.sensitivity_coverage traces/*.bin --changes first --times OUT/first.json`
keeps; the same with `second` and `third`. Candidates are the changes of these sets of which all traces have times. The
search exchanges changes among them, so that the ranges of all traces meet both conditions of that tool with the largest
margin, for the changes of all three sets together and for those of the first set alone. It prints the rows of
`buddysim.replay.sensitivity`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from buddysim.base.textfile import parse_json
from buddysim.replay.schemes import BASELINE
from buddysim.replay.sensitivity import _OF_SPAN, MAX_RUNS
from tools.sensitivity_coverage import DRAWS, MAX_WIDTH, MIN_COVERAGE, RESOLUTION, random_changes

Numbers = npt.NDArray[np.float64]
Choices = npt.NDArray[np.int64]

#: A range may lose so many of its width at each end and still cover enough: its margin.
_MARGINS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.15)
_SOFT = 0.02
_WORST = 2.0  # beyond it, all failures are alike
SETS = ("first", "second", "third")
_FIRST_SEARCH = 5000
_KICKED = 3  # changes that are replaced by chance where no exchange helps
_MIN_GAIN = 1e-9

Times = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A trace and a scheme.

    Attributes
    ----------
    unchanged : logarithm of the slowdown of the unchanged run
    slowdowns : those of the candidates, shape (candidates,)
    ordered : those that the range should have, sorted
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
        more = (_OF_SPAN - 1) * (high - low) / 2
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
        narrower = MAX_WIDTH - np.maximum(RESOLUTION, high - low) / central
        margins: Numbers = np.maximum(np.minimum(best, narrower), -_WORST)
        return margins


def cases_of(sets: Sequence[Times], candidates: Sequence[int]) -> list[Case]:
    """Return the traces and schemes whose slowdown changes, with the changes of all sets, then with those of the first.

    Parameters
    ----------
    sets : by trace, what `sensitivity_coverage.measure` gives for the changes of each set
    candidates : how many changes of each set are candidates
    """
    together, alone = [], []
    for trace, measured in sets[0].items():
        for scheme in measured["times"]:
            own, ratios = measured["own"], [_logarithms(one[trace], scheme) for one in sets]
            slowdowns = [one[own:] for one in ratios]
            ordered = np.sort(np.concatenate(slowdowns))
            if ordered[0] < ordered[-1]:
                of_candidates = [one[:count] for one, count in zip(slowdowns, candidates, strict=True)]
                case = Case(ratios[0][0], np.concatenate(of_candidates), ordered, own - 1)
                together.append(case)
                alone.append(replace(case, ordered=np.sort(slowdowns[0])))
    return together + alone


def candidates_of(sets: Sequence[Times]) -> list[int]:
    """Return how many changes of each set all traces have times of."""
    counts = []
    for one in sets:
        counts.append(min(len(one[trace]["times"][BASELINE]) - one[trace]["own"] for trace in sets[0]))
    return counts


def _logarithms(measured: dict[str, Any], scheme: str) -> Numbers:
    times = measured["times"]
    logarithms: Numbers = np.log(np.array(times[scheme], float) / np.array(times[BASELINE], float))
    return logarithms


def worth(cases: list[Case], choices: Choices) -> Numbers:
    """The least margin of each choice, made smooth: what every case adds counts."""
    summed = sum((np.exp(-case.margins(choices) / _SOFT) for case in cases), start=np.zeros(len(choices)))
    smooth: Numbers = -_SOFT * np.log(summed)
    return smooth


def exchanged(choice: Choices, slot: int, candidates: int) -> Choices:
    """All choices with another candidate in a slot, or with what another slot has; shape (choices, MAX_RUNS)."""
    others = np.setdiff1d(np.arange(candidates), choice)
    replaced = np.tile(choice, (len(others), 1))
    replaced[:, slot] = others
    swapped = np.tile(choice, (MAX_RUNS - 1, 1))
    for row, other in enumerate(number for number in range(MAX_RUNS) if number != slot):
        swapped[row, [slot, other]] = swapped[row, [other, slot]]
    return np.concatenate([replaced, swapped])


def search(cases: list[Case], seed: int, kicks: int) -> tuple[float, Choices]:
    """Exchange what helps most in one slot after the other, from a random choice on, until nothing helps.

    Then replace some of the best choice's candidates by chance, and begin again.

    Parameters
    ----------
    kicks : how often candidates are replaced by chance

    Returns
    -------
    the worth of the best choice, and its candidates in order
    """
    candidates = min(len(case.slowdowns) for case in cases)
    draw = np.random.default_rng(seed)
    value, choice = _ascend(cases, draw.permutation(candidates)[:MAX_RUNS], candidates, draw)
    for _ in range(kicks):
        kicked = choice.copy()
        slots = draw.choice(MAX_RUNS, _KICKED, replace=False)
        kicked[slots] = draw.choice(np.setdiff1d(np.arange(candidates), choice), _KICKED, replace=False)
        other_value, other = _ascend(cases, kicked, candidates, draw)
        if other_value > value:
            value, choice = other_value, other
    return value, choice


def _ascend(cases: list[Case], choice: Choices, candidates: int, draw: np.random.Generator) -> tuple[float, Choices]:
    """Exchange what helps most until nothing helps; return the worth and the choice."""
    value, unchanged, slot = float(worth(cases, choice[None])[0]), 0, 0
    while unchanged < MAX_RUNS:
        slot = (slot + 1) % MAX_RUNS if unchanged else int(draw.integers(MAX_RUNS))
        others = exchanged(choice, slot, candidates)
        worths = worth(cases, others)
        best = int(worths.argmax())
        if worths[best] > value + _MIN_GAIN:
            value, choice, unchanged = float(worths[best]), others[best], 0
        else:
            unchanged += 1
    return value, choice


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", metavar="OUT", type=Path, help="folder of first.json, second.json and third.json")
    parser.add_argument("--searches", type=int, default=2, help="searches, of which the best counts (%(default)s)")
    parser.add_argument("--kicks", type=int, default=300, help="new beginnings of each search (%(default)s)")
    args = parser.parse_args()
    sets = [parse_json((args.out / f"{name}.json").read_text(), f"{name}.json") for name in SETS]
    counts = candidates_of(sets)
    cases = cases_of(sets, counts)
    seeds = range(_FIRST_SEARCH, _FIRST_SEARCH + args.searches)
    value, selected = max((search(cases, seed, args.kicks) for seed in seeds), key=lambda choice: choice[0])
    changes = []
    for name, count in zip(SETS, counts, strict=True):
        changes += random_changes(DRAWS, name, synthetic_sizes=True)[:count]
    margins = [float(case.margins(selected[None])[0]) for case in cases]
    of_all, of_first = margins[: len(margins) // 2], margins[len(margins) // 2 :]
    print(f"# {len(of_all)} cases, worth {value:.3f}, least margin {min(of_all):.3f}, first set {min(of_first):.3f}")
    for number in selected:
        change = changes[number]
        row = [round((factor - 1) * 1_000_000) for factor in (*change.latencies, change.gaps)]
        print(f"    ({', '.join(f'{millionths:+}' for millionths in row)}, {change.seed}),")
    return 0


if __name__ == "__main__":
    sys.exit(main())
