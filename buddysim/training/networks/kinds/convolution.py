"""Convolutions."""

from __future__ import annotations

from buddysim.training.networks.graph import Conv, Layer
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


def _conv(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    channels, height, width = image(inputs[0])
    out_channels, groups = attributes["channels"], attributes["groups"]
    (kernel_h, kernel_w), (stride_h, stride_w) = attributes["kernel"], attributes["stride"]
    (pad_h, pad_w), (dilation_h, dilation_w) = attributes["pad"], attributes["dilation"]
    if channels % groups:
        raise ShapeMismatch(f"input channels that are a multiple of its {groups} groups", channels)
    if out_channels % groups:
        raise ShapeMismatch(f"channels that are a multiple of its {groups} groups", out_channels)
    out_h = window_steps(height, kernel_h, stride_h, pad_h, dilation_h)
    out_w = window_steps(width, kernel_w, stride_w, pad_w, dilation_w)
    if not (out_h and out_w):
        reach = f"{dilation_h * (kernel_h - 1) + 1}x{dilation_w * (kernel_w - 1) + 1}"
        raise ShapeMismatch(f"an input that its {reach} window fits (padding {pad_h}x{pad_w})", shape_text(inputs[0]))
    conv = Conv(
        channels,
        out_channels,
        height,
        width,
        out_h,
        out_w,
        kernel_h,
        kernel_w,
        stride_h,
        stride_w,
        pad_h,
        pad_w,
        groups,
        dilation_h,
        dilation_w,
    )
    return LayerProperties(
        (out_channels, out_h, out_w),
        parameters=conv.weights + out_channels * attributes["bias"],
        flops=2 * conv.multiply_adds,
        conv=conv,
    )


def _conv_saves(layer: Layer, inputs: Inputs, device: Device) -> AutogradSaved:
    return AutogradSaved((0,), weights=layer.conv.weights if layer.conv else 0)


KINDS = (
    LayerKind(
        "conv",
        "convolution",
        frozenset({"x", "dy"}),
        _conv,
        {
            "channels": Attribute("count", "output channels"),
            "kernel": Attribute("pair", "window"),
            "stride": Attribute("pair", "step of the window", 1),
            "pad": Attribute("padding", "zeros added on each side", 0),
            "dilation": Attribute("pair", "distance of the window's elements", 1),
            "groups": Attribute("count", "parts of the channels that don't see each other", 1),
            "bias": Attribute("flag", "a bias for each output channel", True),
        },
        moves=None,
        saves=_conv_saves,
    ),
)
