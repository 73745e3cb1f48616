"""Which measured shapes a calibration may see: fixed by a rule before anything was fitted, the same for every GPU.

Within each group (class of CONV, those with a stride together; kind of layer) shapes are put in the order of their
SHA-256, and the first quarter, rounded up, is held out for validation; all batches and passes of a shape stay
together. The shape of a group that has only one isn't held out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from buddysim.training.cost.timings import MeasuredPass

_COARSE = {"1x1-strided": "strided", "3x3-wide": "3x3"}
"""Groups that were one when the split was fixed."""

HELD_OUT = 4
"""One shape in this many is held out."""


def held_out_shapes(timings: Iterable[MeasuredPass]) -> set[str]:
    """The shapes that are held out."""
    groups: dict[str, set[str]] = {}
    for timing in timings:
        groups.setdefault(_COARSE.get(timing.group, timing.group), set()).add(timing.shape)
    held: set[str] = set()
    for shapes in groups.values():
        if len(shapes) > 1:
            held |= set(sorted(shapes, key=_order)[: -(-len(shapes) // HELD_OUT)])
    return held


def split(timings: Iterable[MeasuredPass]) -> tuple[list[MeasuredPass], list[MeasuredPass]]:
    """Measurements to calibrate with, and those to validate with."""
    everything = list(timings)
    held = held_out_shapes(everything)
    return (
        [timing for timing in everything if timing.shape not in held],
        [timing for timing in everything if timing.shape in held],
    )


def fold(shape: str, folds: int) -> int:
    """The part of a cross-validation within the calibration timings that a shape belongs to."""
    return int(hashlib.sha256(f"fold {shape}".encode()).hexdigest(), 16) % folds


def _order(shape: str) -> str:
    return hashlib.sha256(shape.encode()).hexdigest()
