"""Pooling."""

from __future__ import annotations

from buddysim.training.networks.graph import Layer, Pooling
from buddysim.training.networks.layer_kind import (
    Attribute,
    Attributes,
    AutogradSaved,
    Device,
    Inputs,
    LayerKind,
    LayerProperties,
    ShapeMismatch,
    image,
    shape_text,
    window_steps,
)

_WINDOW = {
    "kernel": Attribute("pair", "window; the whole input by default", optional=True),
    "stride": Attribute("pair", "step of the window; the window itself by default", optional=True),
    "pad": Attribute("padding", "empty elements added on each side", 0),
    "ceil": Attribute("flag", "the last window may hang over the end of the input", False),
}


def _pool(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    channels, height, width = image(inputs[0])
    kernel_h, kernel_w = attributes["kernel"] or (height, width)
    stride_h, stride_w = attributes["stride"] or (kernel_h, kernel_w)
    pad_h, pad_w = attributes["pad"]
    if pad_h >= kernel_h or pad_w >= kernel_w:
        raise ShapeMismatch(f"a padding smaller than its {kernel_h}x{kernel_w} window", f"{pad_h}x{pad_w}")
    out_h = window_steps(height, kernel_h, stride_h, pad_h, ceil=attributes["ceil"])
    out_w = window_steps(width, kernel_w, stride_w, pad_w, ceil=attributes["ceil"])
    if not (out_h and out_w):
        expected = f"an input that its {kernel_h}x{kernel_w} window fits (padding {pad_h}x{pad_w})"
        raise ShapeMismatch(expected, shape_text(inputs[0]))
    return LayerProperties(
        (channels, out_h, out_w),
        flops=channels * out_h * out_w * kernel_h * kernel_w,
        pool=Pooling(kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, attributes["ceil"]),
    )


_INDEX_BYTES = 8


def _maxpool_saves(layer: Layer, inputs: Inputs, device: Device) -> AutogradSaved:
    """Its input and the index of the largest element of each window."""
    return AutogradSaved((0,), sample_bytes=_INDEX_BYTES * layer.output_elements)


def _avgpool_saves(layer: Layer, inputs: Inputs, device: Device) -> AutogradSaved:
    """Its input; nothing where it is a mean over the whole feature map, which PyTorch computes by another kernel."""
    return AutogradSaved((0,)) if "kernel" in dict(layer.attributes) else AutogradSaved()


KINDS = (
    LayerKind(
        "maxpool",
        "the largest of each window",
        frozenset({"x", "y", "dy"}),
        _pool,
        _WINDOW,
        zeros="pools",
        saves=_maxpool_saves,
        moves=lambda x, y, inputs: (x + y, 2 * (x + y)),  # x, y, dy -> dx
    ),
    LayerKind(
        "avgpool",
        "the mean of each window",
        frozenset({"dy"}),
        _pool,
        _WINDOW,
        zeros="pools",
        saves=_avgpool_saves,
        moves=lambda x, y, inputs: (x + y, x + y),
    ),
)
