"""Normalisation."""

from __future__ import annotations

from buddysim.training.networks.graph import ELEMENT_BYTES, Layer
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
    image,
    per_output,
)

_SAVED_STATISTICS = 2  # mean and inverse standard deviation


def _batchnorm(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    channels = inputs[0][0]
    return LayerProperties(
        inputs[0],
        parameters=2 * channels * attributes["affine"],
        flops=4 * elements(inputs[0]),
        saved_fixed_bytes=_SAVED_STATISTICS * channels * ELEMENT_BYTES,
    )


def _layernorm(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    features = inputs[0][-1]
    rows = elements(inputs[0]) // features
    return LayerProperties(
        inputs[0],
        parameters=2 * features,
        flops=8 * elements(inputs[0]),
        saved_sample_bytes=_SAVED_STATISTICS * rows * ELEMENT_BYTES,
    )


def _lrn(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    image(inputs[0])
    return LayerProperties(inputs[0], flops=(2 * attributes["size"] + 3) * elements(inputs[0]))


def _batchnorm_saves(layer: Layer, inputs: Inputs, device: Device) -> AutogradSaved:
    """With the scale and the running statistics; what cuDNN reserves in its fused variants is not counted."""
    channels = inputs[0][0]
    return AutogradSaved((0,), fixed_bytes=layer.saved_fixed_bytes, weights=layer.parameters // 2 + 2 * channels)


def _layernorm_saves(layer: Layer, inputs: Inputs, device: Device) -> AutogradSaved:
    return AutogradSaved((0,), sample_bytes=layer.saved_sample_bytes, weights=layer.parameters)


def _lrn_saves(layer: Layer, inputs: Inputs, device: Device) -> AutogradSaved:
    """PyTorch makes it of other functions, which keep the squares in padded channels, their mean, and its power."""
    channels = inputs[0][0]
    size = dict(layer.attributes).get("size", 5)
    assert isinstance(size, int)
    padding = (size - 1) * elements(inputs[0]) // channels
    return AutogradSaved((0,), map_elements=padding + 3 * layer.output_elements)


KINDS = (
    LayerKind(
        "batchnorm",
        "normalises each channel over the batch; saves its mean and inverse deviation",
        frozenset({"x", "dy"}),
        _batchnorm,
        {"affine": Attribute("flag", "a learned scale and shift for each channel", True)},
        saves=_batchnorm_saves,
        moves=per_output(3, 5),  # statistics first, then values; sums of dy and x dy first, then dx
    ),
    LayerKind(
        "layernorm",
        "normalises each token over its features; saves its mean and inverse deviation",
        frozenset({"x", "dy"}),
        _layernorm,
        moves=per_output(2, 4),
        saves=_layernorm_saves,
        torch=TorchNames(operators=("native_layer_norm",)),
    ),
    LayerKind(
        "lrn",
        "local response normalisation over neighbouring channels",
        frozenset({"x", "y", "dy"}),
        _lrn,
        {"size": Attribute("count", "channels that a value is divided by", 5)},
        zeros="keeps",
        saves=_lrn_saves,
        moves=per_output(2, 4),  # x -> y; x, y, dy -> dx
    ),
)
