"""Trace files whose end is missing: what they still contain, and the check that refuses them."""

from __future__ import annotations

from buddysim.base.errors import BuddysimError
from buddysim.trace.reader import Trace


def partial_contents(trace: Trace) -> str | None:
    """What a trace file whose end is missing still contains; None if the file is complete."""
    missing_from = trace.file.interrupted_at
    if missing_from is None:
        return None
    count = len(trace.kernels)
    text = f"{count} kernel launch{'es' if count != 1 else ''}"
    for kernel in trace.kernels:
        if not kernel.complete:
            text += f", the last with {kernel.n_blocks:,} of its {kernel.grid_blocks:,} thread blocks"
    return f"{text}; everything from byte {missing_from:,} on is missing"


def require_complete(trace: Trace, partial: bool) -> None:
    """Refuse a trace file whose end is missing.

    Parameters
    ----------
    trace : an open trace
    partial : accept such a file

    Raises
    ------
    BuddysimError : the end of the file is missing, and `partial` is false
    """
    contents = None if partial else partial_contents(trace)
    if contents is not None:
        raise BuddysimError(
            f"{trace.path}: partial trace: it has {contents}: expected a complete file, or --partial (partial=True)"
        )
