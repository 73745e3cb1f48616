"""Parts of errors about a user's names and values: the nearest known name, the value cut to fit a line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` most likely meant, or None."""
    candidates = list(known)
    completed = [candidate for candidate in candidates if len(name) > 2 and candidate.startswith(name)]
    if completed:
        return min(completed, key=len)
    folded = {candidate.lower(): candidate for candidate in candidates}
    matches = difflib.get_close_matches(name, candidates, n=1, cutoff=0.5)
    if matches:
        return matches[0]
    matches = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.5)
    return folded[matches[0]] if matches else None


def hint(name: str, known: Iterable[str]) -> str:
    """`` (nearest: NAME)``, or nothing where no known name is near."""
    matches = nearest(name, known)
    return f" (nearest: {matches})" if matches else ""


def misspelling_hint(name: str, known: Iterable[str], cutoff: float) -> str:
    """As `hint`, of names that look alike though they name different things: the nearest has the same digits.

    Parameters
    ----------
    cutoff : how alike they are at least, from 0 to 1
    """
    digits = [one for one in name if one.isdigit()]
    alike = {one.lower(): one for one in known if [digit for digit in one if digit.isdigit()] == digits}
    matches = difflib.get_close_matches(name.lower(), list(alike), n=1, cutoff=cutoff)
    return f" (nearest: {alike[matches[0]]})" if matches else ""


def shortened(text: object, limit: int = 60) -> str:
    """``repr`` of a user's input, cut so that an error stays one readable line."""
    if isinstance(text, str | bytes) and len(text) > 4 * limit:
        text = text[: 4 * limit]  # the rest wouldn't be shown
    shown = repr(text)
    return shown if len(shown) <= limit else f"{shown[: limit - 4]}...{shown[-1]}"


def shortened_name(name: str, limit: int = 60) -> str:
    """Return a user's name as it is if it is one plain word, otherwise as `shortened` shows it."""
    is_plain = (
        len(name) <= limit and name.isascii() and name.replace("-", "").replace(".", "").replace("_", "").isalnum()
    )
    return name if is_plain else shortened(name, limit)
