"""Bytes that the layers other than CONV move: they are bound by device memory, or are matrix products.

Counts are of elements read and written at least once, X and Y of one sample; an optimised kernel comes near them.
"""

from __future__ import annotations

from buddysim.training.cost.timings import Timing
from buddysim.training.networks.graph import ELEMENT_BYTES, Layer

_ONE_TO_ONE = {  # (elements of Y moved forward, backward)
    "relu": (2, 3),  # x -> y; y, dy -> dx
    "sigmoid": (2, 3),
    "tanh": (2, 3),
    "gelu": (2, 3),
    "silu": (2, 3),
    "softmax": (3, 3),  # the largest and the sum first, then shares
    "dropout": (2.25, 2.25),  # its mask has a byte per element
    "batchnorm": (3, 5),  # statistics first, then values; sums of dy and x dy first, then dx
    "layernorm": (2, 4),
    "lrn": (2, 4),  # x -> y; x, y, dy -> dx
    "concat": (2, 2),
    "positions": (2, 2),
    "prepend": (2, 2),
    "take": (2, 2),
    "embedding": (2, 3),  # a gradient is added to rows
    "shortcut": (2, 2),
    "reshape": (0, 0),
    "input": (0, 0),
}


def input_elements(layer: Layer) -> int:
    """Elements of a pooling layer's input of one sample, up to what its last windows leave out or hang over."""
    if layer.pool is None:
        return layer.output_elements
    channels, height, width = layer.output_shape
    pool = layer.pool
    in_h = (height - 1) * pool.stride_h + pool.kernel_h - 2 * pool.pad_h
    in_w = (width - 1) * pool.stride_w + pool.kernel_w - 2 * pool.pad_w
    return channels * in_h * in_w


def moved_elements(kind: str, x: int, y: int, inputs: int = 1) -> tuple[float, float]:
    """Elements that a layer without products reads and writes, forward and backward, of one sample.

    `x` and `y` are the elements of one input and of the output, `inputs` how many inputs it has.
    """
    if kind == "maxpool":
        return x + y, 2 * (x + y)  # x, y, dy -> dx
    if kind == "avgpool":
        return x + y, x + y
    if kind == "add":
        return (inputs + 1) * y, 2 * y
    forward, backward = _ONE_TO_ONE.get(kind, (2, 3))
    return forward * y, backward * y


def layer_elements(layer: Layer) -> tuple[float, float]:
    """The same of a layer of a network."""
    return moved_elements(layer.kind, input_elements(layer), layer.output_elements, len(layer.inputs))


def unweighted_bytes(timing: Timing) -> float:
    """Bytes that a measured layer without products moves; 0 for one with products."""
    if timing.kind in ("conv", "fc"):
        return 0.0
    x = timing.in_channels * timing.in_h * timing.in_w
    out_h = -(-(timing.in_h + 2 * timing.pad_h - timing.kernel_h) // timing.stride_h) + 1
    out_w = -(-(timing.in_w + 2 * timing.pad_w - timing.kernel_w) // timing.stride_w) + 1
    forward, backward = moved_elements(timing.kind, x, timing.in_channels * out_h * out_w)
    return (forward if timing.pass_ == "forward" else backward) * ELEMENT_BYTES * timing.batch
