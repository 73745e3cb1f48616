"""Runs the missing points of a plan: in this process, or on the workers of a Dask cluster."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from buddysim.base.errors import BuddysimError
from buddysim.sweep.estimate import Estimate
from buddysim.sweep.execute import FULL, KILLED, MEMORY, Outcome, run_point
from buddysim.sweep.plan import SweepPlan

#: Tries of a point that fails by itself, and of one whose worker dies.
TRIES, DEATHS = 2, 4
_TIMEOUT_S = 0.25

EventHandler = Callable[[Mapping[str, Any]], object]


@dataclass(slots=True)
class PointTask:
    """A point that waits or runs."""

    key: str
    memory_bytes: int = 0  # known when it is about to start
    tries: int = 0
    deaths: int = 0
    alone: bool = False  # gets all the memory
    failed_on: list[str] = field(default_factory=list)
    grant_bytes: int | None = None


class Executor(Protocol):
    """The processes that simulate points."""

    #: Description for the screen.
    text: str
    #: Memory for all points that run at once; None: unlimited.
    memory_bytes: int | None

    def slots(self) -> int:
        """Points that can run at once."""

    def ahead(self) -> int:
        """Further points that may wait where they are simulated, so that none waits for this process."""

    def submit(self, task: PointTask, spec: Mapping[str, Any]) -> None:
        """Starts a point."""

    def finished(self, timeout_s: float) -> Iterator[tuple[PointTask, Outcome]]:
        """The points that have ended, at least one of them unless none does within that time."""

    def close(self) -> None:
        """Ends everything that it started."""


class SerialExecutor:
    """One point after the other, in this process."""

    memory_bytes: int | None = None

    def __init__(self, folder: str, waiting: Callable[[str], object], text: str = "1 (in this process)") -> None:
        self._folder, self._waiting, self.text = folder, waiting, text
        self._next: list[tuple[PointTask, Mapping[str, Any]]] = []

    def slots(self) -> int:
        return 1

    def ahead(self) -> int:
        return 0

    def submit(self, task: PointTask, spec: Mapping[str, Any]) -> None:
        self._next.append((task, spec))

    def finished(self, timeout_s: float) -> Iterator[tuple[PointTask, Outcome]]:
        while self._next:
            task, spec = self._next.pop()
            yield task, run_point(spec, self._folder, task.grant_bytes, self._waiting)

    def close(self) -> None:
        pass


@dataclass
class SweepSummary:
    """Outcome of a run.

    Attributes
    ----------
    done : results written
    failures : settings (`point`), `why`, `reason` and `tries` of each point without a result
    simulated_s, busy_s : seconds of all `simulate`, and of all work on points
    wall_s : of the run, without the start of workers
    """

    done: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)
    simulated_s: float = 0.0
    busy_s: float = 0.0
    wall_s: float = 0.0


class Runner:
    """Runs the missing points of a plan.

    Parameters
    ----------
    plan : what to run
    executor : where
    estimate : memory of each point before it starts
    on_event : called with every event: `done`, `retry`, `failed`, each a dict with the point's name
    """

    def __init__(self, plan: SweepPlan, executor: Executor, estimate: Estimate, on_event: EventHandler) -> None:
        self.plan, self.executor, self.on_event = plan, executor, on_event
        self._unstarted = iter(plan.missing)
        self._retries: deque[PointTask] = deque()
        self._next: PointTask | None = None
        self._estimate = estimate
        self.running: dict[str, PointTask] = {}
        self.summary = SweepSummary()

    def run(self) -> SweepSummary:
        """Until every point has a result, or has failed.

        Raises
        ------
        BuddysimError
            a store that stays full: further points would be simulated for nothing
        """
        began = time.perf_counter()
        try:
            while self._waiting() or self.running:
                self._start()
                for task, outcome in self.executor.finished(_TIMEOUT_S):
                    del self.running[task.key]
                    self._ended(task, outcome)
                    self._start()
        finally:
            self.summary.wall_s = time.perf_counter() - began
        return self.summary

    def _start(self) -> None:
        while (task := self._waiting()) and self._has_free_slot(task) and self._fits(task):
            self._next = None
            task.grant_bytes = self._grant(task)
            self.running[task.key] = task
            self.executor.submit(task, self.plan.points[task.key].spec())

    def _waiting(self) -> PointTask | None:
        """The point that starts next: made late, so that a long sweep keeps nothing of points that wait."""
        if self._next is None:
            key = next(self._unstarted, None)
            self._next = PointTask(key) if key is not None else self._retries.popleft() if self._retries else None
        return self._next

    def _has_free_slot(self, task: PointTask) -> bool:
        """Whether it may go: one that has failed only where it runs at once, as it chooses its worker."""
        ahead = 0 if task.failed_on else self.executor.ahead()
        return len(self.running) < self.executor.slots() + ahead

    def _fits(self, task: PointTask) -> bool:
        """Whether there is memory for one more; one alone always runs."""
        most = self.executor.memory_bytes
        task.memory_bytes = task.memory_bytes or self._memory_bytes(task)
        if most is None or not self.running:
            return True
        if task.alone or any(other.alone for other in self.running.values()):
            return False
        return task.memory_bytes + sum(other.memory_bytes for other in self.running.values()) <= most

    def _memory_bytes(self, task: PointTask) -> int:
        try:
            return self._estimate.memory_bytes(self.plan.points[task.key])
        except (BuddysimError, OSError):
            return 1  # a file that it reads is missing: the point reports it

    def _grant(self, task: PointTask) -> int | None:
        """Return the memory limit of a point: its fraction or its known need; everything if it runs alone."""
        most = self.executor.memory_bytes
        if most is None:
            return None
        return most if task.alone else max(most // max(self.executor.slots(), 1), task.memory_bytes)

    def _ended(self, task: PointTask, outcome: Outcome) -> None:
        self.summary.simulated_s += outcome.get("seconds", 0.0)
        self.summary.busy_s += outcome.get("busy_s", 0.0)
        if "why" not in outcome:
            self.summary.done += 1
            self.on_event({"event": "done", **outcome})
            return
        if outcome["why"] == FULL:
            missing = len(self.plan.missing) - self.summary.done
            raise BuddysimError(f"{outcome['reason']}: {missing:,} points have no result: free some space there; "
                                "the same command continues")  # fmt: skip
        killed = outcome["why"] == KILLED
        task.deaths += killed
        task.tries += not killed
        task.failed_on.append(outcome.get("worker", ""))
        point = self.plan.points[task.key]
        failure = {
            "key": task.key,
            "point": dict(point.settings),
            "why": outcome["why"],
            "reason": outcome["reason"],
            "tries": task.tries + task.deaths,
        }
        if task.tries < TRIES and task.deaths < DEATHS:
            task.alone = task.alone or outcome["why"] == MEMORY
            self.on_event({"event": "retry", **failure})
            self._retries.append(task)
        else:
            self.summary.failures.append(failure)
            self.on_event({"event": "failed", **failure})
