"""Cost of each layer: time per pass, CONV algorithms with their workspace, bytes moved."""

from buddysim.training.cost.model import ConvAlgorithm, CostModel
from buddysim.training.cost.work import PASSES, Pass

__all__ = ["PASSES", "ConvAlgorithm", "CostModel", "Pass"]
