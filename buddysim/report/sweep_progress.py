"""Progress of a sweep: lines and a bar on a terminal, or every event as a line of JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from buddysim.report.quantities import format_bytes

Event = Mapping[str, Any]
EventHandler = Callable[[Event], None]

_SAY_EVERY_S = 10.0
_MOST_NOTES = 8


@contextmanager
def json_lines() -> Iterator[EventHandler]:
    """Every event as one object on a line of standard output; `progress` follows each point."""
    progress = Count()

    def on_event(event: Event) -> None:
        progress.add(event)
        whole = {**event, **progress.text_parts()} if event["event"] in ("done", "failed") else event
        print(json.dumps(whole, sort_keys=True), flush=True)

    yield on_event


@contextmanager
def screen(missing: int, there: int) -> Iterator[EventHandler]:
    """Lines on standard error; between them a bar where it is a terminal, else a line now and then.

    Parameters
    ----------
    missing, there : points to simulate, and points that have a result
    """
    console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)
    count = Count()
    if not console.is_terminal:
        yield _Lines(console, count).on_event
        return
    columns = (BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=missing or 1)
        lines = _Lines(console, count, every_s=float("inf"))

        def on_event(event: Event) -> None:
            lines.on_event(event)
            progress.update(task, completed=count.done + count.failed, description=count.text())

        yield on_event


class Count:
    """Points so far, their rate, and the time that is left."""

    def __init__(self) -> None:
        self.missing = self.there = self.done = self.failed = 0
        self.running = 0
        self._began: float | None = None

    def add(self, event: Event) -> None:
        """Counts an event."""
        kind = event["event"]
        if kind == "planned":
            self.missing, self.there = event["missing"], event["there"]
        elif kind == "running":
            self._began = time.monotonic()
        elif kind == "done":
            self.done += 1
        elif kind == "failed":
            self.failed += 1

    @property
    def per_s(self) -> float:
        """Points per second since they began to run."""
        passed = time.monotonic() - self._began if self._began is not None else 0.0
        return (self.done + self.failed) / passed if passed else 0.0

    @property
    def left_s(self) -> float | None:
        """Seconds until the end at this rate."""
        left = self.missing - self.done - self.failed
        return left / self.per_s if self.per_s else None

    def text(self) -> str:
        """``12 of 40 done, 1 failed, 3 from the store, 2.1 points/s, 14 s left``."""
        parts = [f"{self.done:,} of {self.missing:,} done"]
        parts += [f"{self.failed:,} failed"] if self.failed else []
        parts += [f"{self.there:,} from the store"] if self.there else []
        parts += [f"{self.per_s:.3g} points/s"] if self.per_s else []
        parts += [f"{duration_text(self.left_s)} left"] if self.left_s is not None else []
        return ", ".join(parts)

    def text_parts(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "done": self.done,
            "failed": self.failed,
            "missing": self.missing,
            "there": self.there,
            "points_per_s": self.per_s,
            "left_s": self.left_s,
        }


class _Lines:
    def __init__(self, console: Console, count: Count, every_s: float = _SAY_EVERY_S) -> None:
        self._console, self._count, self._every_s = console, count, every_s
        self._said = time.monotonic()
        self._last = ""

    def on_event(self, event: Event) -> None:
        self._count.add(event)
        say = getattr(self, f"_{event['event']}", None)
        if say is not None:
            say(event)

    def _planned(self, event: Event) -> None:
        self._print(f"{event['points']:,} points, {event['there']:,} there, {event['missing']:,} to simulate; "
                    f"store: {event['store']}")  # fmt: skip
        for note in event["notes"][:_MOST_NOTES]:
            self._print(note)
        if len(event["notes"]) > _MOST_NOTES:
            self._print(f"and {len(event['notes']) - _MOST_NOTES:,} more like these")
        if "cpu_s" in event and event["missing"]:
            self._print(estimate_text(event))

    def _running(self, event: Event) -> None:
        dashboard = f"; dashboard: {event['dashboard']}" if event["dashboard"] else ""
        self._print(f"running on {event['where']}{dashboard}")

    def _waiting(self, event: Event) -> None:
        if event["reason"] != self._last:
            self._last = event["reason"]
            self._print(event["reason"])

    def _done(self, event: Event) -> None:
        if time.monotonic() - self._said > self._every_s:
            self._said = time.monotonic()
            self._print(self._count.text())

    def _retry(self, event: Event) -> None:
        self._print(f"{event['why']}, tried again: {point_text(event['point'])}: {event['reason']}")

    def _failed(self, event: Event) -> None:
        self._print(f"failed ({event['why']}): {point_text(event['point'])}: {event['reason']}")

    def _interrupted(self, event: Event) -> None:
        self._print(f"interrupted: {self._count.done:,} results were added to the store; the same command goes on")

    def _ended(self, event: Event) -> None:
        failed = f", {event['failed']:,} failed" if event["failed"] else ""
        self._print(f"{event['done']:,} simulated{failed}; {duration_text(event['wall_s'])}, "
                    f"{duration_text(event['simulated_s'])} of simulations")  # fmt: skip

    def _print(self, text: str) -> None:
        self._console.print(f"sweep: {text}")


def point_text(settings: Mapping[str, Any]) -> str:
    """The settings of a point in a line."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def duration_text(seconds: float) -> str:
    """``0.4 s``, ``12 s``, ``3 min 20 s``, ``5 h 10 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def estimate_text(event: Event) -> str:
    """What a dry run says of time and memory."""
    memory = format_bytes(event["memory_bytes"])
    if event["cpu_s"] is None:
        return f"no like point was measured yet, so the time is unknown; memory of a point: up to {memory}"
    return (
        f"about {duration_text(event['cpu_s'])} of one CPU (from {event['measured_points']:,} points like ones in the "
        f"store); memory of a point: up to {memory}"
    )
