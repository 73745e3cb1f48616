"""Activations and dropout."""

from __future__ import annotations

from buddysim.training.networks.kinds._kind import Attribute, Facts, Given, Inputs, Kind, elements, one_value_each


def _dropout(inputs: Inputs, given: Given) -> Facts:
    return Facts(inputs[0], flops=2 * elements(inputs[0]), saved_sample_bytes=elements(inputs[0]))


KINDS = (
    Kind(
        "relu",
        "max(x, 0)",
        frozenset({"y", "dy"}),
        one_value_each(1),
        runs_in_place="elementwise",
        keeps_sign=True,
    ),
    Kind("sigmoid", "1 / (1 + exp(-x))", frozenset({"y", "dy"}), one_value_each(4), runs_in_place="elementwise"),
    Kind("tanh", "hyperbolic tangent", frozenset({"y", "dy"}), one_value_each(4), runs_in_place="elementwise"),
    Kind("gelu", "x times the normal distribution's share below x", frozenset({"x", "dy"}), one_value_each(8)),
    Kind("silu", "x times sigmoid(x)", frozenset({"x", "dy"}), one_value_each(5)),
    Kind(
        "dropout",
        "sets a random share to zero; its mask has a byte per element, as PyTorch's",
        frozenset({"mask", "dy"}),
        _dropout,
        {"share": Attribute("share", "of elements set to zero", 0.5)},
        runs_in_place="elementwise",
        keeps_sign=True,
    ),
)
