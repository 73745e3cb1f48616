"""Selection of the kernels that run."""

from __future__ import annotations

from buddysim.base.errors import BuddysimError
from buddysim.trace import Kernel, Trace


def select_kernels(trace: Trace, requested: slice | range | None) -> list[Kernel]:
    """Return the kernels with these indexes; None: all.

    Raises
    ------
    BuddysimError
        where there are none, or the trace ends before the last one
    """
    count = len(trace.kernels)
    if requested is None:
        return list(trace.kernels)
    numbers = range(count)[requested] if isinstance(requested, slice) else requested
    kernels = [trace.kernels[i] for i in numbers if 0 <= i < count]
    end = requested.stop if isinstance(requested, slice) else max(requested, default=0) + 1
    if not kernels or (end is not None and end > count):
        raise BuddysimError(
            f"kernels {_format_range(requested)}: no such kernel: {trace.path} has kernels 0 to {count - 1}"
        )
    return kernels


def _format_range(requested: slice | range) -> str:
    step = () if requested.step in (None, 1) else (requested.step,)
    parts = (requested.start, requested.stop, *step)
    return ":".join("" if part is None else str(part) for part in parts)
