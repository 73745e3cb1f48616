"""The result of a benchmark: a row of the table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

Returned = TypeVar("Returned")

# A shared computer is slow for seconds or minutes at a time. The best run counts once several have come near it, and
# not before some time has passed: slow runs agree with each other, too.
FEWEST_RUNS = 5
MOST_RUNS = 120
FEWEST_SECONDS = 60
AGREEING_RUNS = 3
AGREEMENT = 0.03


@dataclass(frozen=True)
class Measurement:
    """One figure, and the one required.

    Attributes
    ----------
    name : what was measured
    unit : of all the figures
    best, median : over the repetitions
    asked : what it must be at least (at most, where `smaller_is_better`); None where nothing is required
    all : the figure of every repetition
    comparison : published figures, or ranges to expect
    """

    name: str
    unit: str
    best: float
    median: float
    asked: float | None = None
    smaller_is_better: bool = False
    all: tuple[float, ...] = field(default=())
    comparison: str = ""

    @classmethod
    def of_repetitions(cls, name: str, unit: str, figures: list[float], **more: Any) -> Measurement:
        """The best of several repetitions is the largest (the smallest, where `smaller_is_better`)."""
        best = min(figures) if more.get("smaller_is_better") else max(figures)
        return cls(name, unit, best, statistics.median(figures), all=tuple(figures), **more)

    @property
    def met(self) -> bool | None:
        """Whether it is as required; None where nothing is."""
        if self.asked is None:
            return None
        return self.best <= self.asked if self.smaller_is_better else self.best >= self.asked

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


@dataclass(frozen=True)
class Timed:
    """Seconds that something took: by the clock, and of processor time in all its threads."""

    wall_s: float
    processor_s: float

    @property
    def core_s(self) -> float:
        """Seconds that one core would need: threads that helped count in full."""
        return max(self.wall_s, self.processor_s)


def repeated(rate: Callable[[], float], quick: bool, clock: Callable[[], float] = time.perf_counter) -> list[float]:
    """Measures a rate for some time and until `AGREEING_RUNS` figures lie within `AGREEMENT` of the best.

    `quick` only does so a few times. `clock` tells seconds.
    """
    end = clock() + FEWEST_SECONDS
    figures = [rate() for _ in range(FEWEST_RUNS)]
    while not quick and len(figures) < MOST_RUNS:
        near_best = sum(figure >= (1 - AGREEMENT) * max(figures) for figure in figures)
        if clock() >= end and near_best >= AGREEING_RUNS:
            break
        figures.append(rate())
    return figures


def timed(action: Callable[[], Returned]) -> tuple[Returned, Timed]:
    """What an action returns, and how long it took."""
    wall, processor = time.perf_counter(), time.process_time()
    returned = action()
    return returned, Timed(time.perf_counter() - wall, time.process_time() - processor)
