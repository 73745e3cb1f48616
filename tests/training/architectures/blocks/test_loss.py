"""Gradients of the output product and cross-entropy together."""

from __future__ import annotations

from buddysim.training.architectures.blocks.loss import FusedLinearCrossEntropy
from buddysim.training.autograd import Tape
from buddysim.training.autograd.dtypes import float32, int64
from buddysim.training.autograd.module import Parameter


def test_a_matrix_is_trained_above_frozen_features() -> None:
    """The features' gradient is computed all the same; the matrix gets its own, not that one."""
    with Tape() as tape:
        features, words = tape.empty((16, 8), float32, "input"), tape.empty((16,), int64, "input")
        weight = Parameter((32, 8))
        FusedLinearCrossEntropy.apply(features, weight, None, words).backward()
    assert weight.grad is not None
    assert weight.grad.shape == (32, 8)
