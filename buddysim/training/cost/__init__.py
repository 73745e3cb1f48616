"""Cost of each layer: time per pass, CONV algorithms with their workspace, bytes moved.

The names load on first use: a precision's name needs no machine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim.training.cost.model import ConvAlgorithm, CostModel
    from buddysim.training.cost.work import PASSES, Pass

__all__ = ["PASSES", "ConvAlgorithm", "CostModel", "Pass"]

_HOMES = {"ConvAlgorithm": "model", "CostModel": "model", "PASSES": "work", "Pass": "work"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
