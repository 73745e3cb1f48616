"""Activations and dropout."""

from __future__ import annotations

from buddysim.training.networks.graph import Layer
from buddysim.training.networks.layer_kind import (
    Attribute,
    Attributes,
    AutogradSaved,
    Device,
    Inputs,
    LayerKind,
    LayerProperties,
    TorchNames,
    elements,
    one_value_each,
    per_output,
)


def _dropout(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    return LayerProperties(inputs[0], flops=2 * elements(inputs[0]), saved_sample_bytes=elements(inputs[0]))


def _dropout_saves(layer: Layer, inputs: Inputs, device: Device) -> AutogradSaved:
    """A mask of truth values from the fused kernel of GPUs; on a CPU the scaled mask, as wide as the feature map."""
    if device == "cpu":
        return AutogradSaved(map_elements=layer.output_elements)
    return AutogradSaved(sample_bytes=layer.output_elements)


def _clamp_saves(layer: Layer, inputs: Inputs, device: Device) -> AutogradSaved:
    """Its input, or a copy of it where it is overwritten."""
    return AutogradSaved(map_elements=layer.output_elements) if layer.in_place else AutogradSaved((0,))


KINDS = (
    LayerKind(
        "relu",
        "the larger of x and 0",
        frozenset({"y", "dy"}),
        one_value_each(1),
        runs_in_place="elementwise",
        keeps_sign=True,
        reads_zeros=True,
        zeros="makes",
        classifier="between",
        torch=TorchNames(("ReLU",), ("relu", "relu_"), ("relu", "relu_")),
    ),
    LayerKind(
        "relu6",
        "x between 0 and 6; PyTorch keeps its input, or a copy of it where it is overwritten",
        frozenset({"y", "dy"}),
        one_value_each(2),
        runs_in_place="elementwise",
        zeros="makes",
        classifier="between",
        saves=_clamp_saves,
        torch=TorchNames(("ReLU6",), ("relu6", "relu6_"), ("hardtanh", "hardtanh_")),
    ),
    LayerKind(
        "sigmoid",
        "1 / (1 + exp(-x))",
        frozenset({"y", "dy"}),
        one_value_each(4),
        runs_in_place="elementwise",
        classifier="between",
        torch=TorchNames(("Sigmoid",), ("sigmoid", "sigmoid_"), ("sigmoid", "sigmoid_")),
    ),
    LayerKind(
        "tanh",
        "hyperbolic tangent",
        frozenset({"y", "dy"}),
        one_value_each(4),
        runs_in_place="elementwise",
        classifier="between",
        torch=TorchNames(("Tanh",), ("tanh", "tanh_"), ("tanh", "tanh_")),
    ),
    LayerKind(
        "gelu",
        "x times the cumulative normal distribution at x",
        frozenset({"x", "dy"}),
        one_value_each(8),
        classifier="between",
        torch=TorchNames(("GELU",), ("gelu",), ("gelu",)),
    ),
    LayerKind(
        "silu",
        "x times sigmoid(x)",
        frozenset({"x", "dy"}),
        one_value_each(5),
        classifier="between",
        torch=TorchNames(("SiLU",), ("silu",), ("silu", "silu_")),
    ),
    LayerKind(
        "hardswish",
        "x times relu6(x + 3) / 6",
        frozenset({"x", "dy"}),
        one_value_each(4),
        classifier="between",
        torch=TorchNames(("Hardswish",), ("hardswish",), ("hardswish", "hardswish_")),
    ),
    LayerKind(
        "dropout",
        "sets random elements to zero; its mask has a byte per element, as PyTorch's on a GPU",
        frozenset({"mask", "dy"}),
        _dropout,
        {"probability": Attribute("fraction", "probability that an element is set to zero", 0.5)},
        runs_in_place="elementwise",
        keeps_sign=True,
        classifier="before",
        zeros="drops",
        saves=_dropout_saves,
        moves=per_output(2.25, 2.25),  # the mask has a byte per element
    ),
)
