"""The screen of a comparison with reference values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from buddysim.report.screen import NOT_APPLICABLE, Column, Part, ScreenTable
from buddysim.validation import ComparedQuantity, Reference
from buddysim.validation.comparison import (
    CORRELATION,
    FACTOR,
    FAIL,
    FITTED,
    MEDIAN_ERROR,
    NO_TOLERANCE,
    PASS,
    UNCHECKED,
)

_GROUP_ERROR = 0.001
"""Rows of a group are counted within this error: 0.1 %."""
_MAX_ROWS = 40
"""With more quantities than this, a screen without --all shows only those that fail."""
_MAX_SUBJECT = 20


def validation_parts(
    summary: str, quantities: Sequence[ComparedQuantity], reference: Reference, *, show_all: bool = False
) -> list[Part]:
    """Return the screen of one comparison: the answer, a table, and how independent of it the model is.

    Parameters
    ----------
    summary : name and subject of the comparison
    quantities : rows of the table of all comparisons
    reference : what the reference values are
    show_all : show quantities without a tolerance, too
    """
    compared = [row for row in quantities if row.status not in (FITTED, UNCHECKED)]
    limited = [row for row in compared if row.tolerance is not None]
    failed = [row for row in limited if row.status == FAIL]
    parts: list[Part] = [summary, f"reference: {reference.description}", ""]
    parts.append(f"pass: {len(limited) - len(failed)} of {len(limited)} quantities with a tolerance")
    shown = compared if show_all else failed if len(limited) > _MAX_ROWS else limited
    if shown:
        parts += ["", *_table(sorted(shown, key=lambda row: row.status != FAIL))]
    if any(row.error_kind == CORRELATION for row in shown):
        parts.append("Error of a correlation r: 1 - r.")
    parts += _group_lines(compared)
    hidden = [row for row in compared if row not in shown]
    for status, text in ((PASS, "within tolerance"), (NO_TOLERANCE, "without a tolerance")):
        n_hidden = sum(row.status == status for row in hidden)
        if n_hidden:
            parts.append(f"{n_hidden} more quantities {text}: --all")
    parts += _unchecked_lines(quantities)
    return [*parts, "", *_independence_lines(quantities, reference)]


def _table(rows: Sequence[ComparedQuantity]) -> list[Part]:
    """Return the table of some quantities, without columns that would be empty.

    Long subjects get a line of their own, above their quantities.
    """
    names = {row.quantity for row in rows}
    subject, subjects = _without_common_word([row.subject for row in rows])
    columns = {
        Column("machine", left=True, priority=4): [row.machine for row in rows],
        Column(subject, left=True, shorten_to=14): subjects,
        Column("quantity", left=True, shorten_to=14): [_label(row) for row in rows],
        Column("reference", priority=2): [_amount(row.reference, row.unit) for row in rows],
        Column("simulated", priority=3): [_amount(row.simulated, row.unit) for row in rows],
        Column("error"): [_error(row) for row in rows],
        Column("tolerance", priority=1): [_tolerance(row) for row in rows],
        Column("status", left=True): [row.status for row in rows],
    }
    machine, of_subject, quantity, *_ = columns
    is_long = max(map(len, subjects)) > _MAX_SUBJECT
    caption = []
    if is_long or len({row.machine for row in rows}) == 1:
        del columns[machine]
    if is_long:
        del columns[of_subject]
    elif len(names) == 1:
        caption = [f"quantity: {columns.pop(quantity)[0]}"]
    filled = {column: cells for column, cells in columns.items() if set(cells) != {NOT_APPLICABLE}}
    table_rows: list[Sequence[str]] = list(zip(*filled.values(), strict=True))
    if is_long:
        by_subject: dict[str, list[Sequence[str]]] = {}
        for name, cells in zip(subjects, table_rows, strict=True):
            by_subject.setdefault(name, []).append([f"  {cells[0]}", *cells[1:]])
        table_rows = [cells for name, members in by_subject.items() for cells in ([name], *members)]
    return [*caption, ScreenTable(list(filled), table_rows)]


def _without_common_word(subjects: Sequence[str]) -> tuple[str, list[str]]:
    """Return a heading for subjects, and the subjects: a last word common to all is the heading."""
    words = {subject.rpartition(" ")[2] for subject in subjects}
    if len(words) == 1 and all(" " in subject for subject in subjects) and len(set(subjects)) > 1:
        return words.pop(), [subject.rpartition(" ")[0] for subject in subjects]
    return "subject", list(subjects)


def _label(row: ComparedQuantity) -> str:
    """Name a quantity; errors that have no sign are marked: ``median |error|``."""
    return re.sub("errors?", "|error|", row.quantity) if row.error_kind == MEDIAN_ERROR else row.quantity


def _error(row: ComparedQuantity) -> str:
    """Format an error in the unit of its kind."""
    if row.error is None:
        return NOT_APPLICABLE
    if row.error_kind == CORRELATION:
        return _format_small(row.error)
    if row.error_kind == FACTOR:
        return f"{row.error + 1:.3g}x"
    text = format_percent(row.error)
    return f"+{text}" if row.error_kind != MEDIAN_ERROR and row.error > 0 else text


def _tolerance(row: ComparedQuantity) -> str:
    """Format a tolerance in the unit of its error."""
    if row.tolerance is None:
        return NOT_APPLICABLE
    if row.error_kind == CORRELATION:
        return _format_small(row.tolerance)
    return f"{row.tolerance + 1:.3g}x" if row.error_kind == FACTOR else f"{100 * row.tolerance:.3g} %"


def _format_small(value: float) -> str:
    """Format a number below 1 with at most four decimals."""
    return f"{value:.4f}".rstrip("0").rstrip(".") or "0"


def _amount(value: float | None, unit: str) -> str:
    """Format a value with its unit; cycles are the unit that needs no name."""
    if value is None:
        return NOT_APPLICABLE
    if unit == "" and abs(value) <= 1:
        return f"{value:.4f}" if value > 0.99 else f"{value:.3g}"
    if unit == "B":
        value, unit = value / 2**20, "MiB"
    text = f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"
    return text if unit == "cycles" else f"{text} {unit}".rstrip()


def format_percent(value: float) -> str:
    """Format a fraction as a percentage with one decimal."""
    percent = 100 * value
    if percent == 0:
        return "0 %"
    if abs(percent) < 0.05:
        return "< 0.1 %"
    return f"{percent:.1f} %" if abs(percent) < 100 else f"{percent:,.0f} %"


def _group_lines(rows: Sequence[ComparedQuantity]) -> Iterator[str]:
    """Yield a line for each group of rows: how many are within 0.1 %, and the largest error."""
    for group in dict.fromkeys(row.group for row in rows if row.group):
        members = [row for row in rows if row.group == group and row.error is not None]
        within = sum(abs(row.error or 0.0) <= _GROUP_ERROR for row in members)
        worst = max(members, key=lambda row: abs(row.error or 0.0))
        detail = worst.quantity.removeprefix(group).strip()
        yield (
            f"{group}: {within} of {len(members)} within 0.1 %, largest error "
            f"{format_percent(worst.error or 0.0)} ({worst.subject}, {detail})"
        )


def _unchecked_lines(rows: Sequence[ComparedQuantity]) -> Iterator[str]:
    """Yield the machines and subjects that were not compared, by reason."""
    unchecked = [row for row in rows if row.status == UNCHECKED]
    for note in dict.fromkeys(row.note for row in unchecked):
        same = [row for row in unchecked if row.note == note]
        is_machine = all(row.subject.startswith("every ") for row in same)
        names = dict.fromkeys(row.machine if is_machine else row.subject for row in same)
        yield f"not checked: {', '.join(names)} ({note})"


def _independence_lines(rows: Sequence[ComparedQuantity], reference: Reference) -> Iterator[str]:
    """Yield what was fitted to the quantities, changed in view of them, and held out."""
    keys = dict.fromkeys(row.quantity.removeprefix(FITTED).strip() for row in rows if row.status == FITTED)
    yield "how independent the model is of these quantities"
    yield f"- {reference.fitted}"
    if keys:
        yield f"  Fitted machine keys: {', '.join(keys)}."
    yield f"- {reference.changed}"
    yield f"- {reference.held_out}"
