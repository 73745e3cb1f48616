"""Tolerances of pairs of trainings, as quantities of the comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from buddysim.validation.comparison import MEDIAN_ERROR, ComparedQuantity
from buddysim.validation.schemes.compared_schemes import ComparedScheme, ordered_pairs

LARGE_TOLERANCE, SMALL_TOLERANCE, SAVED_TOLERANCE = 0.30, 0.02, 0.10


def scheme_quantities(comparison: str, machine: str, rows: Sequence[ComparedScheme]) -> Iterator[ComparedQuantity]:
    """Yield slowdown and bytes saved of the simulated pairs, and how many pairs of variants are in the wrong order."""
    for one in rows:
        row = one.row
        if one.slowdown is None:
            continue
        tolerance = LARGE_TOLERANCE if one.is_large else SMALL_TOLERANCE
        yield ComparedQuantity(
            comparison, machine, row.id, "slowdown", "x", one.slowdown, row.slowdown, one.slowdown_error, tolerance
        )
        unit = "" if row.saved_unit == "fraction" else row.saved_unit
        yield ComparedQuantity(
            comparison, machine, row.id, "bytes saved", unit, one.saved, row.saved, one.saved_error, SAVED_TOLERANCE
        )
    pairs = [*ordered_pairs(rows)]
    if pairs:
        wrong = sum(not right for *_, right in pairs) / len(pairs)
        yield ComparedQuantity(
            comparison, machine, "schemes", "order of variants", "", None, None, wrong, 0.0, f"{len(pairs)} pairs",
            MEDIAN_ERROR,
        )  # fmt: skip
