"""Groups of layers that several families have."""

from __future__ import annotations

from typing import Any

from buddysim.training.networks.builder import NetworkBuilder


def conv_relu(
    net: NetworkBuilder, name: str, relu: str, channels: int, *, after: int | None = None, **shape: Any
) -> int:
    """A convolution with biases and its ReLU, in place; returns the ReLU."""
    net.add("conv", name=name, inputs=after, channels=channels, **shape)
    return net.add("relu", name=relu)


def conv_norm(
    net: NetworkBuilder,
    name: str,
    channels: int,
    *,
    after: int | None = None,
    relu: bool = True,
    bias: bool = False,
    **shape: Any,
) -> int:
    """A convolution, its batch normalisation and an optional ReLU in place; returns the last of them."""
    net.add("conv", name=name, inputs=after, channels=channels, bias=bias, **shape)
    last = net.add("batchnorm", name=f"{name}/norm")
    return net.add("relu", name=f"{name}/relu") if relu else last


def close(net: NetworkBuilder, name: str, classes: int) -> None:
    """The fully connected layer that scores the classes, and their probabilities."""
    net.add("fc", name=name, features=classes)
    net.add("softmax", name="softmax")
