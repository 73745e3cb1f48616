"""Which of a trace's kernels run."""

from __future__ import annotations

from buddysim.base.errors import BuddysimError
from buddysim.trace import Kernel, Trace


def select_kernels(trace: Trace, chosen: slice | range | None) -> list[Kernel]:
    """The kernels of these indices in the trace, all where None is given; a BuddysimError where none is left."""
    count = len(trace.kernels)
    if chosen is None:
        return list(trace.kernels)
    numbers = range(count)[chosen] if isinstance(chosen, slice) else chosen
    kernels = [trace.kernels[i] for i in numbers if 0 <= i < count]
    if not kernels:
        raise BuddysimError(f"{trace.path}: no kernel in {_text(chosen)}: the trace has kernels 0 to {count - 1}")
    return kernels


def _text(chosen: slice | range) -> str:
    parts = (chosen.start, chosen.stop) if chosen.step in (None, 1) else (chosen.start, chosen.stop, chosen.step)
    return ":".join("" if part is None else str(part) for part in parts)
