"""Verifies an importer's output before it is renamed: no import succeeds with a file that `verify` refuses."""

from __future__ import annotations

from pathlib import Path

from buddysim.base.errors import BuddysimError, TraceFileError
from buddysim.trace import open_trace, verify_trace


def verify_output(source: Path, part: Path) -> None:
    """Refuse an output that is no valid trace.

    Parameters
    ----------
    source : name of the input, for the message
    part : the trace file before it is renamed
    """
    try:
        with open_trace(part) as trace:
            verify_trace(trace)
    except TraceFileError as error:
        raise BuddysimError(f"{source}: contradicts itself: of it came {error.section}: {error.problem}") from None
