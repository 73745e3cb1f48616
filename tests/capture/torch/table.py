"""The table of captured scripts: `python -m tests.capture.torch.table` writes docs/validation/scripts.md."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import NamedTuple

PAGE = Path(__file__).parents[3] / "docs" / "validation" / "scripts.md"
_MIB = 2**20

_INTRODUCTION = """\
# Captures of training scripts

This page compares the memory that captures tell of 22 training scripts with what an independent tracker counts on
PyTorch's dispatcher (`tests/capture/torch/tracker.py`). `python -m tests.capture.torch.table` writes the page; the
tests of the scripts compare each row.

- Peaks are of live tensors, by the CPU's rules, but for dropout's noise in a byte an element. Storages count once,
  rounded to 512 B.
- *Twice the batch* is predicted from the capture, and tracked in a run of the script.
- Twelve scripts were written before the capture of scripts, ten as a check when it was finished for these. None was
  changed for it.
- Generic operators have no rule of their own: time by bytes and FLOPs, memory as recorded. Their fractions are of the
  operators' time on an RTX 4090 and of the memory at the peak, at the captured batch.
- The GPU's time and memory are predicted, not measured.

| script | batch | told, MiB | tracked, MiB | error | twice, told | tracked | error | generic time | generic memory |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
"""


class ScriptFigures(NamedTuple):
    """What a capture tells of a script.

    Attributes
    ----------
    peaks : at the batch: told and tracked, bytes
    twice : at twice the batch, likewise
    generic : fractions of time and of memory at the peak
    """

    name: str
    batch: int
    peaks: tuple[int, int]
    twice: tuple[int, int]
    generic: tuple[float, float]

    @property
    def row(self) -> str:
        """Return the row of the table."""
        peaks = " | ".join(
            f"{one / _MIB:.2f} | {other / _MIB:.2f} | {100 * (one / other - 1):+.2f} %"
            for one, other in (self.peaks, self.twice)
        )
        time, memory = (f"{100 * one:.0f} %" for one in self.generic)
        return f"| {self.name} | {self.batch} | {peaks} | {time} | {memory} |"


def page(figures: Iterable[ScriptFigures]) -> str:
    """Return the page."""
    figures = list(figures)
    lines = _INTRODUCTION.splitlines() + [one.row for one in figures]
    for what, peaks in (
        ("the batch", [one.peaks for one in figures]),
        ("twice the batch", [one.twice for one in figures]),
    ):
        errors = [abs(predicted / tracked - 1) for predicted, tracked in peaks]
        lines += ["", f"At {what} the median error is {median(errors):.2%}, the largest {max(errors):.2%}."]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Capture and track each script, and write the page."""
    from tests.capture.torch.test_scripts import BATCHES, figures_of

    rows = []
    for name in BATCHES:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(figures_of(name, Path(folder)).figures)
        print(rows[-1].row, file=sys.stderr, flush=True)
    PAGE.write_text(page(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
