"""How measures word what stands beside a number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Result = Mapping[str, Any]


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean."""
    values = list(values)
    return sum(values) / len(values)


def listed(values: dict[str, float], form: str = "{:.0f}") -> str:
    """``AlexNet (128) 75, OverFeat (128) 91``."""
    return ", ".join(f"{label} {form.format(amount)}" for label, amount in values.items())


def loss(result: Result) -> float:
    """Performance lost, in per cent; where it doesn't fit, as if it did."""
    return 100 * (1 - result["features.oracle_ms"] / result["features.time_ms"])
