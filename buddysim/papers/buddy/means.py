"""Means over the study's workloads: geometric of ratios and speeds, arithmetic of fractions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import fmean, geometric_mean

from buddysim.papers.buddy.buddy_study import BuddyStudy

Mean = Callable[[Iterable[float]], float]
GROUPS: dict[str, str | None] = {"HPC": "HPC", "DL": "DL", "all": None}


def geometric(values: Iterable[float | None]) -> float | None:
    """The geometric mean; None where there are no values, or one is missing."""
    return _mean(geometric_mean, values)


def arithmetic(values: Iterable[float | None]) -> float | None:
    """The arithmetic mean; None where there are no values, or one is missing."""
    return _mean(fmean, values)


def _mean(mean: Mean, values: Iterable[float | None]) -> float | None:
    all_values = list(values)
    known = [value for value in all_values if value is not None]
    return mean(known) if known and len(known) == len(all_values) else None


def values_by_workload(study: BuddyStudy, group: str, value: Callable[[str], float | None]) -> dict[str, float | None]:
    """A value of each workload of a group, or of ``all``."""
    return {name: value(name) for name in study.names(GROUPS[group])}


def lacking_text(values: Mapping[str, float | None]) -> str:
    """Return the workloads without a value, for notes; empty if all have one."""
    names = [name for name, value in values.items() if value is None]
    return f"missing: {', '.join(names)}" if names else ""
