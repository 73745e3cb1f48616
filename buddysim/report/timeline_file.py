"""Timelines as files: a trace for Perfetto or a figure, by the ending of the name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.output import check_output
from buddysim.report.timeline_trace import write_trace
from buddysim.training.outcome import IterationOutcome

TRACE = ".json"
FIGURES = (".png", ".svg", ".pdf")


def check_timeline(path: str | os.PathLike[str]) -> None:
    """Says at once, before anything runs, if a timeline couldn't be written there."""
    suffix = Path(path).suffix.lower()
    if suffix not in (TRACE, *FIGURES):
        expected = f"{TRACE} (a trace for Perfetto) or {', '.join(FIGURES)} (a figure)"
        raise BuddysimError(f"{os.fspath(path)}: expected a name that ends in {expected}")
    check_output(path)


def write_timeline(path: str | os.PathLike[str], outcomes: Mapping[str, IterationOutcome]) -> None:
    """Writes the timelines of one or more schemes, by name, into one file.

    Parameters
    ----------
    path : ``.json``: Trace Event Format; ``.png``, ``.svg``, ``.pdf``: a figure
    """
    check_timeline(path)
    if Path(path).suffix.lower() == TRACE:
        write_trace(path, outcomes)
        return
    from buddysim.report.timeline_figure import write_figure  # loads matplotlib

    write_figure(path, outcomes)
