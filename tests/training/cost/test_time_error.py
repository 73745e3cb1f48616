"""What an error of a prediction is taken from: timings of this GPU and library, of another library, of another GPU."""

from __future__ import annotations

import pytest

from buddysim.training import zoo
from buddysim.training.cost.model import CostModel
from buddysim.training.cost.time_error import kind_of


@pytest.mark.parametrize(
    ("machine", "library", "kind", "origin"),
    [
        ("titan-x", "cudnn5", "layers-fp32-own", ""),
        ("titan-x", "cudnn7", "layers-fp32-library", ""),
        ("rtx-2080-ti", None, "layers-fp32-neighbour", "v100"),
        ("k40", None, "layers-fp32-neighbour", "m40"),
    ],
)
def test_kind_of_a_described_network(machine: str, library: str | None, kind: str, origin: str) -> None:
    result, predicted_from = kind_of(zoo.load("alexnet"), CostModel.load(machine, library))
    assert result == kind
    assert predicted_from == origin
