"""Activations and dropout."""

from __future__ import annotations

from buddysim.training.networks.graph import Layer
from buddysim.training.networks.layer_kind import (
    Attribute,
    Attributes,
    Device,
    Facts,
    Inputs,
    Kind,
    Saved,
    Torch,
    elements,
    one_value_each,
    per_output,
)


def _dropout(inputs: Inputs, attributes: Attributes) -> Facts:
    return Facts(inputs[0], flops=2 * elements(inputs[0]), saved_sample_bytes=elements(inputs[0]))


def _dropout_saves(layer: Layer, inputs: Inputs, device: Device) -> Saved:
    """A mask of truth values from the fused kernel of GPUs; on a CPU the scaled mask, as wide as the map."""
    if device == "cpu":
        return Saved(map_elements=layer.output_elements)
    return Saved(sample_bytes=layer.output_elements)


def _clamp_saves(layer: Layer, inputs: Inputs, device: Device) -> Saved:
    """Its input, or a copy of it where it is overwritten."""
    return Saved(map_elements=layer.output_elements) if layer.in_place else Saved((0,))


KINDS = (
    Kind(
        "relu",
        "the larger of x and 0",
        frozenset({"y", "dy"}),
        one_value_each(1),
        runs_in_place="elementwise",
        keeps_sign=True,
        reads_zeros=True,
        zeros="makes",
        classifier="between",
        torch=Torch(("ReLU",), ("relu", "relu_"), ("relu", "relu_")),
    ),
    Kind(
        "relu6",
        "x between 0 and 6; PyTorch keeps its input, or a copy of it where it is overwritten",
        frozenset({"y", "dy"}),
        one_value_each(2),
        runs_in_place="elementwise",
        zeros="makes",
        classifier="between",
        saves=_clamp_saves,
        torch=Torch(("ReLU6",), ("relu6", "relu6_"), ("hardtanh", "hardtanh_")),
    ),
    Kind(
        "sigmoid",
        "1 / (1 + exp(-x))",
        frozenset({"y", "dy"}),
        one_value_each(4),
        runs_in_place="elementwise",
        classifier="between",
        torch=Torch(("Sigmoid",), ("sigmoid", "sigmoid_"), ("sigmoid", "sigmoid_")),
    ),
    Kind(
        "tanh",
        "hyperbolic tangent",
        frozenset({"y", "dy"}),
        one_value_each(4),
        runs_in_place="elementwise",
        classifier="between",
        torch=Torch(("Tanh",), ("tanh", "tanh_"), ("tanh", "tanh_")),
    ),
    Kind(
        "gelu",
        "x times the normal distribution's share below x",
        frozenset({"x", "dy"}),
        one_value_each(8),
        classifier="between",
        torch=Torch(("GELU",), ("gelu",), ("gelu",)),
    ),
    Kind(
        "silu",
        "x times sigmoid(x)",
        frozenset({"x", "dy"}),
        one_value_each(5),
        classifier="between",
        torch=Torch(("SiLU",), ("silu",), ("silu", "silu_")),
    ),
    Kind(
        "hardswish",
        "x times relu6(x + 3) / 6",
        frozenset({"x", "dy"}),
        one_value_each(4),
        classifier="between",
        torch=Torch(("Hardswish",), ("hardswish",), ("hardswish", "hardswish_")),
    ),
    Kind(
        "dropout",
        "sets a random share to zero; its mask has a byte per element, as PyTorch's on a GPU",
        frozenset({"mask", "dy"}),
        _dropout,
        {"share": Attribute("share", "of elements set to zero", 0.5)},
        runs_in_place="elementwise",
        keeps_sign=True,
        classifier="before",
        zeros="drops",
        saves=_dropout_saves,
        moves=per_output(2.25, 2.25),  # the mask has a byte per element
    ),
)
