"""Causes of numbers that are not reproduced: causes that several numbers have in common are stated once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from string import ascii_uppercase

from buddysim.workloads.workload_registry import REGISTRY

UNITS = ("ms",)
MIN_WORDS = 6
"""Shorter clauses are repeated."""


def split_causes(causes: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return each cause with marks in place of its common clauses, and the common clauses with their marks.

    A cause is a list of clauses between semicolons. Clauses of a cause become sentences.
    """
    clauses = [cause.split("; ") for cause in causes]
    whole = Counter(cause for cause in causes if cause)
    counts = Counter(clause for cause in causes if whole[cause] < 2 for clause in cause.split("; "))
    common = [cause for cause, count in whole.items() if count > 1 and len(cause.split()) >= MIN_WORDS]
    common += [clause for clause, count in counts.items() if count > 1 and len(clause.split()) >= MIN_WORDS]
    marks = {clause: ascii_uppercase[number] for number, clause in enumerate(common)}
    shown = []
    for cause, parts in zip(causes, clauses, strict=True):
        if cause in marks:
            shown.append(f"{marks[cause]}.")
            continue
        own = sentences("; ".join(part for part in parts if part not in marks))
        shown.append(" ".join(filter(None, [own, *(f"{marks[part]}." for part in parts if part in marks)])))
    return shown, [f"**{mark}**: {sentences(clause)}" for clause, mark in marks.items()]


def sentences(cause: str) -> str:
    """Return the clauses of a cause as sentences."""
    return " ".join(f"{_capitalised(clause)}." for clause in cause.split("; ") if clause)


def _capitalised(clause: str) -> str:
    """Return a clause with a capital, unless it begins with a unit or the name of a workload."""
    first = clause.split()[0].strip(":,")
    return clause if first in UNITS or first in REGISTRY.names() else f"{clause[:1].upper()}{clause[1:]}"
