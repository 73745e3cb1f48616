"""The factor on a trace's compute gaps: an exact fraction of numbers that do not overflow in the engine."""

from __future__ import annotations

from fractions import Fraction

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened

MAX_SCALE = 1000
MAX_DENOMINATOR = 1_000_000


def exact_compute_gap_scale(value: Fraction | float) -> Fraction:
    """Return the factor as a fraction: 0.2567 is 2567/10000.

    Parameters
    ----------
    value : from 1/1000 to 1000

    Returns
    -------
    Fraction, the nearest with a denominator of at most 1,000,000

    Raises
    ------
    BuddysimError : it is no number, or out of range
    """
    number = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    if not number or not Fraction(1, MAX_SCALE) <= value <= MAX_SCALE:
        raise BuddysimError(
            f"compute_gap_scale {shortened(value)}: expected a number from 1/{MAX_SCALE} to {MAX_SCALE}"
        )
    return Fraction(value).limit_denominator(MAX_DENOMINATOR)
