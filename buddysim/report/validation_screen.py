"""Comparisons with measurements, on the screen and as a page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from buddysim.report.screen import NOT_APPLICABLE, Column, Part, ScreenTable
from buddysim.validation import ComparedQuantity
from buddysim.validation.comparison import FITTED, PASS

_HEAD = """# Held against real GPUs and other simulators

Written by `python -m buddysim validate -o docs`; a slow test keeps it up to date. `validation.csv` has every
quantity of every comparison, on this page and with papers, as one table; the other CSV files have every point.
"""
_PART = re.compile(r"<!-- comparison: (\w+) -->")


def validation_parts(quantities: Sequence[ComparedQuantity]) -> list[Part]:
    """The screen of one comparison."""
    columns = [
        Column("machine", left=True), Column("subject", left=True), Column("quantity", left=True), Column("replayed"),
        Column("reference"), Column("error"), Column("tolerance"), Column("status", left=True),
    ]  # fmt: skip
    shown = [row for row in quantities if row.status != FITTED]
    rows = [
        [
            row.machine, row.subject, row.quantity, amount(row.simulated, row.unit), amount(row.reference, row.unit),
            share(row.error), share(row.tolerance), row.status,
        ]
        for row in shown
    ]  # fmt: skip
    asked = [row for row in shown if row.tolerance is not None]
    met = sum(row.status == PASS for row in asked)
    return [ScreenTable(columns, rows), f"{met} of {len(asked)} goals met."]


def number(value: float | None) -> str:
    return NOT_APPLICABLE if value is None else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def amount(value: float | None, unit: str) -> str:
    return number(value) if value is None else f"{number(value)} {unit}".rstrip()


def share(value: float | None) -> str:
    return NOT_APPLICABLE if value is None else f"{100 * value:.1f} %"


def parts_of(text: str) -> dict[str, str]:
    """The parts of a page, by comparison; none where it is no such page."""
    found = _PART.split(text)[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


def page(parts: Mapping[str, str]) -> str:
    """The page of some comparisons' parts, Markdown."""
    return _HEAD + "".join(f"\n<!-- comparison: {name} -->\n\n{part.strip()}\n" for name, part in parts.items())
