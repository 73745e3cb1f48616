"""Reference model of `entry_sizes`: one entry at a time, in plain Python."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.compress import UNKNOWN_CLASS

ENTRIES_PER_PAGE = 64
MODULUS = 2**64
STEP = 0x9E3779B97F4A7C15


def mix(x: int) -> int:
    """The finaliser of SplitMix64."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % MODULUS
    x = (x ^ x >> 27) * 0x94D049BB133111EB % MODULUS
    return x ^ x >> 31


def draw_class(
    entry: int, ends: Sequence[int], seed: int, allocation: int, outlier_pages: int, outlier_entries: int
) -> int:
    """The class of one entry of an allocation; parameters as in `entry_sizes.draw_classes`."""
    page, index = divmod(entry, ENTRIES_PER_PAGE)
    key = mix(mix((seed + STEP) % MODULUS) ^ (allocation + 1) * STEP % MODULUS)
    page_draw = mix((key + (page + 1) * STEP) % MODULUS)
    draw = mix((page_draw + (index + 1) * STEP) % MODULUS)
    if draw % 65536 < outlier_entries:
        return _pick(ends, draw >> 32)
    if page_draw % 65536 < outlier_pages:
        return _pick(ends, page_draw >> 32)
    return _pick(ends, mix(key) >> 32)


def fill_unsampled(classes: Sequence[int], page_entries: int) -> tuple[list[int], int]:
    """Return the classes with class 15 filled, and the number of filled entries, as `entry_sizes.fill_unsampled`."""
    pages = [list(classes[first : first + page_entries]) for first in range(0, len(classes), page_entries)]
    sampled = [number for number, page in enumerate(pages) if any(c != UNKNOWN_CLASS for c in page)]
    unknown = sum(c == UNKNOWN_CLASS for c in classes)
    if not sampled:
        return list(classes), unknown
    whole = {number: _filled_page(pages[number]) for number in sampled}
    filled: list[int] = []
    for number, page in enumerate(pages):
        source = whole[min(sampled, key=lambda other: (abs(other - number), other))]
        filled += [source[index % len(source)] for index in range(len(page))]
    return filled, unknown


def _filled_page(page: list[int]) -> list[int]:
    known = [index for index, c in enumerate(page) if c != UNKNOWN_CLASS]
    return [page[min(known, key=lambda other: (abs(other - index), other))] for index in range(len(page))]


def _pick(ends: Sequence[int], draw: int) -> int:
    return next(number for number, end in enumerate(ends) if draw < end)
