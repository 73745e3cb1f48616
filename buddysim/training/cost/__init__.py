"""Cost of each layer: time per pass, CONV algorithms with their workspace, bytes moved.

The names load on first use: a precision's name needs no machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.first_use import names_on_first_use

if TYPE_CHECKING:
    from buddysim.training.cost.model import ConvAlgorithm, CostModel
    from buddysim.training.cost.work import PASSES, Pass

__all__ = ["PASSES", "ConvAlgorithm", "CostModel", "Pass"]

_HOMES = {"ConvAlgorithm": "model", "CostModel": "model", "PASSES": "work", "Pass": "work"}

__getattr__ = names_on_first_use(__name__, _HOMES)
