"""Normalisation."""

from __future__ import annotations

from buddysim.training.networks.graph import ELEMENT_BYTES
from buddysim.training.networks.layer_kind import (
    Attribute,
    Attributes,
    Facts,
    Inputs,
    Kind,
    Torch,
    elements,
    image,
    per_output,
)

_SAVED_STATISTICS = 2  # mean and inverse standard deviation


def _batchnorm(inputs: Inputs, attributes: Attributes) -> Facts:
    channels = inputs[0][0]
    return Facts(
        inputs[0],
        parameters=2 * channels * attributes["affine"],
        flops=4 * elements(inputs[0]),
        saved_fixed_bytes=_SAVED_STATISTICS * channels * ELEMENT_BYTES,
    )


def _layernorm(inputs: Inputs, attributes: Attributes) -> Facts:
    features = inputs[0][-1]
    rows = elements(inputs[0]) // features
    return Facts(
        inputs[0],
        parameters=2 * features,
        flops=8 * elements(inputs[0]),
        saved_sample_bytes=_SAVED_STATISTICS * rows * ELEMENT_BYTES,
    )


def _lrn(inputs: Inputs, attributes: Attributes) -> Facts:
    image(inputs[0])
    return Facts(inputs[0], flops=(2 * attributes["size"] + 3) * elements(inputs[0]))


KINDS = (
    Kind(
        "batchnorm",
        "normalises each channel over the batch; saves its mean and inverse deviation",
        frozenset({"x", "dy"}),
        _batchnorm,
        {"affine": Attribute("flag", "a learned scale and shift for each channel", True)},
        moves=per_output(3, 5),  # statistics first, then values; sums of dy and x dy first, then dx
    ),
    Kind(
        "layernorm",
        "normalises each token over its features; saves its mean and inverse deviation",
        frozenset({"x", "dy"}),
        _layernorm,
        moves=per_output(2, 4),
        torch=Torch(operators=("native_layer_norm",)),
    ),
    Kind(
        "lrn",
        "local response normalisation over neighbouring channels",
        frozenset({"x", "y", "dy"}),
        _lrn,
        {"size": Attribute("count", "channels that a value is divided by", 5)},
        zeros="keeps",
        moves=per_output(2, 4),  # x -> y; x, y, dy -> dx
    ),
)
