"""Simulated values of papers' numbers: the functions that `simulates` marks."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import Any

from buddysim.papers.reported_values import ReportedNumber, paper_folders
from buddysim.sweep.cached_results import Result, SavedResults

SimulationFunction = Callable[[SavedResults], "SimulatedValue"]


@dataclass(frozen=True)
class SimulatedValue:
    """Simulated value of a number.

    Attributes
    ----------
    value : in the number's unit; None: nothing to compare
    note : shown in the comparison: values of single networks, the workspace that the paper's number implies
    cause : cause of the error, with numbers; shown where the number is not reproduced
    """

    value: ReportedNumber | None
    note: str = ""
    cause: str = ""


def simulates(*ids: str) -> Callable[[Callable[..., SimulatedValue]], Callable[..., SimulatedValue]]:
    """Mark the function that simulates these numbers.

    It is called with the results of training simulations, and with the id if it simulates several numbers.
    """

    def mark(function: Callable[..., SimulatedValue]) -> Callable[..., SimulatedValue]:
        function.simulated_ids = ids  # type: ignore[attr-defined]
        return function

    return mark


@cache
def simulation_functions() -> Mapping[str, SimulationFunction]:
    """Return every marked function of the papers' folders, by the id of the number that it simulates."""
    by_id: dict[str, SimulationFunction] = {}
    for paper in paper_folders():
        for module in pkgutil.iter_modules(paper.__path__):
            for function in vars(import_module(f"{paper.__name__}.{module.name}")).values():
                for id, simulation in _by_id(function):
                    if by_id.setdefault(id, simulation) is not simulation:
                        raise ValueError(
                            f"{paper.__name__}.{module.name}: {id!r}: simulated twice: expected one function"
                        )
    return by_id


def _by_id(function: Any) -> list[tuple[str, SimulationFunction]]:
    ids = getattr(function, "simulated_ids", ())
    return [(id, function if len(ids) == 1 else partial(function, id=id)) for id in ids]


def loss_percent(result: Result) -> float:
    """Return the feature layers' performance loss relative to the oracle; a network need not fit."""
    return float(100 * (1 - result["feature_layers.oracle_ms"] / result["feature_layers.time_ms"]))


def format_by_network(values: Mapping[str, float], form: str = "{:.0f}") -> str:
    """``AlexNet (128) 75, OverFeat (128) 91``: for notes."""
    return ", ".join(f"{label} {form.format(amount)}" for label, amount in values.items())
