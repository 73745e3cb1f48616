"""Patterns of compressed sizes: ``"32 B:3, 128 B:1"`` is three entries of 32 B, then one of 128 B, and so on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from buddysim.compress import STUDY_CLASSES
from buddysim.machine.units import parse_size

MAX_PATTERN_ENTRIES = 2**16


def parse_pattern(pattern: str) -> npt.NDArray[np.uint8]:
    """Return the size classes of one period of the pattern, uint8; raise a ValueError for an unreadable pattern."""
    classes: list[int] = []
    known = {size: number for number, size in enumerate(STUDY_CLASSES)}
    for part in pattern.split(","):
        text, _, repeats = part.partition(":")
        size = parse_size(text.strip())
        if size not in known:
            raise ValueError(f"sizes: {size} B is not a size class: expected one of {', '.join(map(str, known))} B")
        count = repeats.strip() or "1"
        if not count.isdecimal() or not 0 < int(count) <= MAX_PATTERN_ENTRIES:
            raise ValueError(f"sizes: {part.strip()!r}: expected SIZE:ENTRIES, 1 to {MAX_PATTERN_ENTRIES} entries")
        classes += [known[size]] * int(count)
    if len(classes) > MAX_PATTERN_ENTRIES:
        raise ValueError(
            f"sizes: a pattern of {len(classes)} entries is too long: expected at most {MAX_PATTERN_ENTRIES}"
        )
    return np.array(classes, dtype=np.uint8)


def check_pattern(pattern: str) -> None:
    """Raise a ValueError unless the pattern is ``none`` or readable."""
    if pattern != "none":
        parse_pattern(pattern)


def pattern_classes(pattern: str, entries: int) -> npt.NDArray[np.uint8]:
    """Return the size classes of `entries` entries by repetition of the pattern."""
    return np.resize(parse_pattern(pattern), entries)
