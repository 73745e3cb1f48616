"""The result of a benchmark: a row of the table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

Returned = TypeVar("Returned")

# A shared computer is slow for seconds or minutes at a time. The best run counts if several are near it, after a
# # minimum time: slow runs agree with each other, too.
MIN_RUNS = 5
MAX_RUNS = 120
MIN_SECONDS = 60
AGREEING_RUNS = 3
AGREEMENT = 0.03


@dataclass(frozen=True)
class Measurement:
    """A measured figure, and the required one.

    Attributes
    ----------
    name : what was measured
    unit : of all the figures
    best, median : over the repetitions
    required : smallest value that passes (largest, with `smaller_is_better`); None: no requirement
    all : the figure of every repetition
    comparison : published figures, or ranges to expect
    """

    name: str
    unit: str
    best: float
    median: float
    required: float | None = None
    smaller_is_better: bool = False
    all: tuple[float, ...] = field(default=())
    comparison: str = ""

    @classmethod
    def of_repetitions(cls, name: str, unit: str, figures: list[float], **more: Any) -> Measurement:
        """Return the best of several repetitions: the largest (the smallest, with `smaller_is_better`)."""
        best = min(figures) if more.get("smaller_is_better") else max(figures)
        return cls(name, unit, best, statistics.median(figures), all=tuple(figures), **more)

    @property
    def passes(self) -> bool | None:
        """Whether the figure is as required; None: no requirement."""
        if self.required is None:
            return None
        return self.best <= self.required if self.smaller_is_better else self.best >= self.required

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "passes": self.passes}


@dataclass(frozen=True)
class Timed:
    """Seconds of an action: wall-clock time, and processor time of all its threads."""

    wall_s: float
    processor_s: float

    @property
    def core_s(self) -> float:
        """Seconds that one core would need: helping threads count in full."""
        return max(self.wall_s, self.processor_s)


def repeated(rate: Callable[[], float], quick: bool, clock: Callable[[], float] = time.perf_counter) -> list[float]:
    """Measure a rate for some time and until `AGREEING_RUNS` figures are within `AGREEMENT` of the best.

    With `quick`, the rate is measured only a few times. `clock` returns seconds.
    """
    end = clock() + MIN_SECONDS
    figures = [rate() for _ in range(MIN_RUNS)]
    while not quick and len(figures) < MAX_RUNS:
        near_best = sum(figure >= (1 - AGREEMENT) * max(figures) for figure in figures)
        if clock() >= end and near_best >= AGREEING_RUNS:
            break
        figures.append(rate())
    return figures


def timed(action: Callable[[], Returned]) -> tuple[Returned, Timed]:
    """Return the result of an action, and its time."""
    wall, processor = time.perf_counter(), time.process_time()
    returned = action()
    return returned, Timed(time.perf_counter() - wall, time.process_time() - processor)
