"""Ranges of numbers as users write them: ``3``, ``3:7``, ``3:`` or ``:7``."""

from __future__ import annotations

from collections.abc import Sequence


def parse_range(text: str, what: str, example: str, max_digits: int | None = None) -> tuple[int, int | None]:
    """Return the first number of a range, and the one after its last; None: to the end.

    Parameters
    ----------
    what : what the numbers count, for errors
    example : valid texts, for errors
    max_digits : of a number; None: any

    Raises
    ------
    ValueError
        where it is no range, or empty; the text says what was expected
    """
    parts = [part.strip() for part in text.split(":")]
    if len(parts) > 2 or not text.strip() or not _are_numbers(parts, max_digits):
        raise ValueError(f"expected a {what} or FIRST:END, for example {example}")
    first = int(parts[0] or 0)
    if len(parts) == 1:
        return first, first + 1
    end = int(parts[1]) if parts[1] else None
    if end is not None and end <= first:
        raise ValueError(f"no {what} in it: expected the end after the first")
    return first, end


def _are_numbers(parts: Sequence[str], max_digits: int | None) -> bool:
    return all(part == "" or (part.isdecimal() and (max_digits is None or len(part) <= max_digits)) for part in parts)
