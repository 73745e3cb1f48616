"""Verifies an importer's file before it gets its name: no import succeeds with a file that `verify` refuses."""

from __future__ import annotations

from pathlib import Path

from buddysim.base.errors import BuddysimError, TraceFileError
from buddysim.trace import open_trace, verify_trace


def verify_output(source: Path, part: Path) -> None:
    """Refuses what was made of `source` where it is no valid trace.

    Parameters
    ----------
    source : what was imported, for the message
    part : the trace file as it is now
    """
    try:
        with open_trace(part) as trace:
            verify_trace(trace)
    except TraceFileError as error:
        raise BuddysimError(f"{source}: contradicts itself: of it came {error.section}: {error.problem}") from None
