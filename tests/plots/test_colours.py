"""Colours of kinds of memory and of series: each differs from each other one, neighbours also in grey."""

from __future__ import annotations

from itertools import combinations, pairwise

from buddysim.plotting.memory_kinds import COLOURS, LABELS
from buddysim.plotting.style import SERIES


def lab(colour: str) -> tuple[float, float, float]:
    """Return a colour of sRGB in CIELAB, where distances are about those that eyes see."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    whites = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
    )
    x, y, z = (one ** (1 / 3) if one > 0.008856 else 7.787 * one + 16 / 116 for one in whites)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def test_no_two_kinds_have_nearly_one_colour() -> None:
    near = [
        (one, other)
        for one, other in combinations(COLOURS, 2)
        if sum((a - b) ** 2 for a, b in zip(lab(COLOURS[one]), lab(COLOURS[other]), strict=True)) ** 0.5 < 10
    ]
    assert near == []


def test_neighbours_differ_in_lightness() -> None:
    assert list(COLOURS) == list(LABELS)
    near = [pair for pair in pairwise(COLOURS) if abs(lab(COLOURS[pair[0]])[0] - lab(COLOURS[pair[1]])[0]) < 8]
    assert near == []


def test_series_differ_in_grey() -> None:
    lightness = [lab(colour)[0] for colour in SERIES]
    assert min(abs(one - other) for one, other in combinations(lightness, 2)) > 5
    assert min(abs(one - other) for one, other in pairwise(lightness)) > 15
