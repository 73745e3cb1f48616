"""Split of measured shapes into calibration and validation, by the same rule for every GPU.

Groups are classes of CONV, all strided ones together, and kinds of layer. In each group, shapes are sorted by their
SHA-256, and the first quarter, rounded up, is held out for validation. All batches and passes of a shape stay together.
The only shape of a group is not held out. The rule was fixed before the first fit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from buddysim.training.cost.timings import MeasuredPass

_COARSE = {"1x1-strided": "strided", "3x3-wide": "3x3"}
"""Classes that count as one group in the split, and the name of that group."""

HELD_OUT = 4
"""One shape in this many is held out."""


def held_out_shapes(timings: Iterable[MeasuredPass]) -> set[str]:
    """Return the shapes that are held out."""
    groups: dict[str, set[str]] = {}
    for timing in timings:
        groups.setdefault(_COARSE.get(timing.group, timing.group), set()).add(timing.shape)
    held: set[str] = set()
    for shapes in groups.values():
        if len(shapes) > 1:
            held |= set(sorted(shapes, key=_order)[: -(-len(shapes) // HELD_OUT)])
    return held


def split(timings: Iterable[MeasuredPass]) -> tuple[list[MeasuredPass], list[MeasuredPass]]:
    """Return the timings for calibration, and those for validation."""
    everything = list(timings)
    held = held_out_shapes(everything)
    return (
        [timing for timing in everything if timing.shape not in held],
        [timing for timing in everything if timing.shape in held],
    )


def _order(shape: str) -> str:
    return hashlib.sha256(shape.encode()).hexdigest()
