"""Progress of a run, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from buddysim.base.terminal import one_line
from buddysim.report.quantities import format_rate
from buddysim.report.screen import shorten

Report = Callable[[int, int], None]
Starter = Callable[[str], Report]


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{format_rate(speed)} {self.unit}")


@contextmanager
def progress_bars(unit: str = "memory instr.") -> Iterator[Starter | None]:
    """Gives a function that starts a bar of some name; None where standard error is no terminal.

    Parameters
    ----------
    unit : of the progress, in the plural
    """
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), _Rate(unit))
    with Progress(*columns, TimeRemainingColumn(), console=Console(file=sys.stderr), transient=True) as progress:

        def start(name: str) -> Report:
            task = progress.add_task(name, total=None)
            return lambda done, total: progress.update(task, completed=done, total=max(total, 1))

        yield start


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """Give a function that shows a text in one line of standard error; the line is erased at the end.

    Nothing is shown where standard error is no terminal.
    """
    console = Console(file=sys.stderr)
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda text: None
        return
    with console.status("", spinner="line") as status:
        yield lambda text: status.update(Text(shorten(one_line(text), max(console.width - 4, 1))))
