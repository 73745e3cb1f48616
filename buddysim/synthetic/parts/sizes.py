"""Patterns of compressed sizes: ``"32 B:3, 128 B:1"`` is three entries of 32 B, then one of 128 B, and so on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from buddysim.compress import STUDY_CLASSES
from buddysim.machine.units import parse_size

MAX_PATTERN_ENTRIES = 2**16


def parse_pattern(pattern: str) -> npt.NDArray[np.uint8]:
    """Size classes of one period of the pattern, uint8; raises a ValueError where it can't be read."""
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
    """Raises a ValueError where the pattern is neither ``none`` nor readable."""
    if pattern != "none":
        parse_pattern(pattern)


def pattern_classes(pattern: str, entries: int) -> npt.NDArray[np.uint8]:
    """Size classes of that many entries, the pattern repeated."""
    return np.resize(parse_pattern(pattern), entries)
