"""The screen of a sweep: labelled lines, with a bar between them on a terminal; or every event as a line of JSON."""

from __future__ import annotations

import json
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from buddysim.report.quantities import byte_unit, format_significant
from buddysim.report.screen import make_printable, screen_width

Event = Mapping[str, Any]
EventHandler = Callable[[Event], None]

_PROGRESS_INTERVAL_S = 10.0
_MAX_NOTES = 8
_LABEL_WIDTH = 10


@contextmanager
def json_lines() -> Iterator[EventHandler]:
    """Write every event as one object on a line of standard output; those of points have the progress so far."""
    progress = SweepProgress()

    def on_event(event: Event) -> None:
        progress.add(event)
        of_point = event["event"] in ("done", "failed")
        print(json.dumps({**event, **progress.fields()} if of_point else event, sort_keys=True), flush=True)

    yield on_event


@contextmanager
def screen(missing: int) -> Iterator[EventHandler]:
    """Write lines on standard error; between them a bar on a terminal, otherwise a line from time to time.

    Parameters
    ----------
    missing : points to simulate
    """
    console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)
    progress = SweepProgress()
    if not console.is_terminal:
        yield _Lines(console, progress, screen_width()).on_event
        return
    columns = (BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=missing or 1)
        lines = _Lines(console, progress, console.width, interval_s=float("inf"))

        def on_event(event: Event) -> None:
            lines.on_event(event)
            bar.update(task, completed=progress.done + progress.failed, description=progress.text())

        yield on_event


class SweepProgress:
    """Counts the points of a sweep so far, their rate, and the remaining time."""

    def __init__(self) -> None:
        self.missing = self.stored = self.done = self.failed = 0
        self._began: float | None = None

    def add(self, event: Event) -> None:
        """Count an event."""
        kind = event["event"]
        if kind == "planned":
            self.missing, self.stored = event["missing"], event["stored"]
        elif kind == "running":
            self._began = time.monotonic()
        elif kind == "done":
            self.done += 1
        elif kind == "failed":
            self.failed += 1

    @property
    def points_per_s(self) -> float:
        """Points per second since the first one started."""
        passed = time.monotonic() - self._began if self._began is not None else 0.0
        return (self.done + self.failed) / passed if passed else 0.0

    @property
    def remaining_s(self) -> float | None:
        """Seconds until the end at this rate; None if no point has ended."""
        remaining = self.missing - self.done - self.failed
        return remaining / self.points_per_s if self.points_per_s else None

    def text(self) -> str:
        """Return the progress, for example ``12 of 40 simulated, 1 failed, 2.1 points/s, 14 s remaining``."""
        parts = [f"{self.done:,} of {self.missing:,} simulated"]
        parts += [f"{self.failed:,} failed"] if self.failed else []
        parts += [f"{self.points_per_s:.3g} points/s"] if self.points_per_s else []
        parts += [f"{format_duration(self.remaining_s)} remaining"] if self.remaining_s is not None else []
        return ", ".join(parts)

    def fields(self) -> dict[str, Any]:
        """Return the progress as plain values."""
        return {
            "done": self.done,
            "failed": self.failed,
            "missing": self.missing,
            "stored": self.stored,
            "points_per_s": self.points_per_s,
            "remaining_s": self.remaining_s,
        }


class _Lines:
    """Prints one or more lines for each event that a reader needs to know of."""

    def __init__(
        self, console: Console, progress: SweepProgress, width: int, interval_s: float = _PROGRESS_INTERVAL_S
    ) -> None:
        self._console, self._progress, self._width, self._interval_s = console, progress, width, interval_s
        self._printed = time.monotonic()
        self._last_reason = ""

    def on_event(self, event: Event) -> None:
        self._progress.add(event)
        print_event = getattr(self, f"_{event['event']}", None)
        if print_event is not None:
            print_event(event)

    def _planned(self, event: Event) -> None:
        self._print(
            f"{event['requested']:,} points: {event['stored']:,} in the store, {event['missing']:,} to simulate"
        )
        self._line("store", shorten_path(event["store"]))
        for note in event["notes"][:_MAX_NOTES]:
            self._line("note", note)
        if len(event["notes"]) > _MAX_NOTES:
            self._line("note", f"{len(event['notes']) - _MAX_NOTES:,} more such notes")
        if "cpu_s" in event and event["missing"]:
            self._line("estimate", format_estimate(event))

    def _running(self, event: Event) -> None:
        dashboard = f", dashboard {event['dashboard']}" if event["dashboard"] else ""
        self._line("workers", f"{event['where']}{dashboard}")

    def _waiting(self, event: Event) -> None:
        if event["reason"] != self._last_reason:
            self._last_reason = event["reason"]
            self._line("waiting", event["reason"])

    def _done(self, event: Event) -> None:
        if time.monotonic() - self._printed > self._interval_s:
            self._printed = time.monotonic()
            self._line("progress", self._progress.text())

    def _interrupted(self, event: Event) -> None:
        self._line("stopped", f"{self._progress.done:,} results are in the store; the same command continues")

    def _ended(self, event: Event) -> None:
        simulated = f"{event['done']:,} simulated, {event['failed']:,} failed"
        times = f"{format_duration(event['wall_s'])} ({format_duration(event['simulated_s'])} in simulations)"
        self._line("done", f"{simulated}, {times}")
        self._line("next", f"buddysim results --store {shorten_path(event['store'])}")
        for failure in event["failures"]:
            self._print("")
            varied = {name: value for name, value in failure["point"].items() if name in event["varied"]}
            self._line("failed", format_settings(varied or failure["point"]))
            kind = "" if failure["why"] == "error" else f"{failure['why']}: "
            self._line("  error", f"{kind}{failure['reason']}")
            self._line("  tries", str(failure["tries"]))

    def _line(self, label: str, text: str) -> None:
        lines = textwrap.wrap(
            text, max(self._width - _LABEL_WIDTH, 20), break_long_words=False, break_on_hyphens=False
        ) or [""]
        for number, line in enumerate(lines):
            self._print(f"{'' if number else label:{_LABEL_WIDTH}}{line}")

    def _print(self, text: str) -> None:
        self._console.print(make_printable(text))


def shorten_path(path: str) -> str:
    """Return a path relative to the current folder if it is inside of it."""
    inside = Path(path).is_relative_to(Path.cwd())
    return str(Path(path).relative_to(Path.cwd())) if inside else path


def format_settings(settings: Mapping[str, Any]) -> str:
    """Return settings in a line, for example ``seed=3, scheme=buddy``."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def format_duration(seconds: float) -> str:
    """Return a time, for example ``0.4 s``, ``12 s``, ``3 min 20 s`` or ``5 h 10 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, whole_seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {whole_seconds} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def format_estimate(event: Event) -> str:
    """Return the time and memory that a dry run expects."""
    factor, unit = byte_unit(event["memory_bytes"])
    memory = f"memory up to {format_significant(event['memory_bytes'] / factor)} {unit} per point"
    if event["cpu_s"] is None:
        return f"time unknown (no similar point in the store), {memory}"
    return (
        f"about {format_duration(event['cpu_s'])} of one CPU (from {event['measured_points']:,} similar points in the "
        f"store), {memory}"
    )
