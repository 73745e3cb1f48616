"""Bytes that layers without matrix products move; device memory bounds these layers.

Counts are elements of X and Y of one sample that are read and written at least once, as kinds of layers declare them
(`Kind.moves`). An optimised kernel comes close to them.
"""

from __future__ import annotations

from buddysim.training.cost.timings import MeasuredPass
from buddysim.training.networks import kinds
from buddysim.training.networks.graph import ELEMENT_BYTES, Layer


def input_elements(layer: Layer) -> int:
    """Return the elements of a pooling layer's input of one sample, as far as its windows cover them."""
    if layer.pool is None:
        return layer.output_elements
    channels, height, width = layer.output_shape
    pool = layer.pool
    in_h = (height - 1) * pool.stride_h + pool.kernel_h - 2 * pool.pad_h
    in_w = (width - 1) * pool.stride_w + pool.kernel_w - 2 * pool.pad_w
    return channels * in_h * in_w


def moved_elements(kind: str, x: int, y: int, inputs: int = 1) -> tuple[float, float]:
    """Return the elements that a layer without products reads and writes per sample, forward and backward.

    Parameters
    ----------
    x, y : elements of one input and of the output, of one sample
    inputs : number of inputs
    """
    moves = kinds.REGISTRY.find(kind).moves
    return (0.0, 0.0) if moves is None else moves(x, y, inputs)


def layer_elements(layer: Layer) -> tuple[float, float]:
    """Return the elements that a layer of a network moves per sample, forward and backward; 0 for the input."""
    if not layer.inputs:
        return 0.0, 0.0
    return moved_elements(layer.kind, input_elements(layer), layer.output_elements, len(layer.inputs))


def unweighted_bytes(timing: MeasuredPass) -> float:
    """Return the bytes that a measured layer without products moves; 0 for one with products."""
    if timing.has_products:
        return 0.0
    x = timing.in_channels * timing.in_h * timing.in_w
    out_h = -(-(timing.in_h + 2 * timing.pad_h - timing.kernel_h) // timing.stride_h) + 1
    out_w = -(-(timing.in_w + 2 * timing.pad_w - timing.kernel_w) // timing.stride_w) + 1
    forward, backward = moved_elements(timing.kind, x, timing.in_channels * out_h * out_w)
    return (forward if timing.pass_ == "forward" else backward) * ELEMENT_BYTES * timing.batch
