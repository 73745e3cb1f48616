"""Bloom's GELU, operator by operator."""

from __future__ import annotations

from collections import Counter

from buddysim.training.architectures.bloom import GeLUFunction
from buddysim.training.autograd import Tape
from buddysim.training.autograd.module import Parameter


def test_the_gradient_computes_the_values_again_by_the_formula_of_transformers() -> None:
    """``bloom_gelu_back``: its only difference is ``1 - tanh_out * tanh_out``."""
    with Tape() as tape:
        result = GeLUFunction.apply(Parameter((4, 8)))
        forward = Counter(one.name for one in tape.operations)
        result.sum().backward()
    names = Counter(one.name for one in tape.operations) - forward
    assert forward == {"mul": 6, "add": 2, "tanh": 1}
    assert names == {"sum": 1, "ones_like": 1, "mul": 12, "add": 4, "rsub": 1, "tanh": 1}
