"""A network's description as a PyTorch module that computes it, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from buddysim.base.errors import BuddysimError
from buddysim.training.networks.graph import Layer, Network


class NetworkModule(nn.Module):  # type: ignore[misc]
    """Computes a network; of a closing softmax it gives the scores, as a loss takes them.

    Weights of CONV and FC layers are initialised as He et al. (ICCV 2015) do, biases are 0.

    Parameters
    ----------
    network : of layers that this module knows; none runs in place

    Raises
    ------
    BuddysimError
        where a layer is of another kind
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        self.steps = nn.ModuleList(_step(network, layer) for layer in network.layers[1:])
        for step in self.steps:
            if isinstance(step, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(step.weight, nonlinearity="relu")
                if step.bias is not None:
                    nn.init.zeros_(step.bias)

    def forward(self, images: torch.Tensor, note: Callable[[Layer, torch.Tensor], None] | None = None) -> torch.Tensor:
        """The scores; `note` is called with every layer's output."""
        values = [images]
        for layer, step in zip(self.network.layers[1:], self.steps, strict=True):
            inputs = [values[producer] for producer in layer.inputs]
            values.append(step(*inputs) if layer.kind != "fc" else step(inputs[0].flatten(1)))
            if note is not None:
                note(layer, values[-1])
        return values[-1].flatten(1)


class _Join(nn.Module):  # type: ignore[misc]
    def __init__(self, join: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.join = join

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.join(*inputs)


def _step(network: Network, layer: Layer) -> nn.Module:
    """The module of one layer."""
    attributes: dict[str, Any] = dict(layer.attributes)
    shape = network.layers[layer.inputs[0]].output_shape
    if layer.conv is not None:
        conv = layer.conv
        return nn.Conv2d(
            conv.in_channels, conv.out_channels, (conv.kernel_h, conv.kernel_w), (conv.stride_h, conv.stride_w),
            (conv.pad_h, conv.pad_w), (conv.dilation_h, conv.dilation_w), conv.groups, attributes["bias"],
        )  # fmt: skip
    if layer.pool is not None:
        pool = layer.pool
        kind = nn.MaxPool2d if layer.kind == "maxpool" else nn.AvgPool2d
        window = (pool.kernel_h, pool.kernel_w), (pool.stride_h, pool.stride_w), (pool.pad_h, pool.pad_w)
        return kind(*window, ceil_mode=pool.ceil)
    simple: dict[str, Callable[[], nn.Module]] = {
        "relu": nn.ReLU,
        "fc": lambda: nn.Linear(math.prod(shape), attributes["features"], attributes["bias"]),
        "batchnorm": lambda: nn.BatchNorm2d(shape[0], affine=attributes["affine"]),
        "dropout": lambda: nn.Dropout(attributes["probability"]),
        "lrn": lambda: nn.LocalResponseNorm(attributes["size"]),
        "softmax": nn.Identity,
        "add": lambda: _Join(lambda first, *rest: sum(rest, first)),
        "concat": lambda: _Join(lambda *inputs: torch.cat(inputs, 1)),
        "shortcut": lambda: _Join(lambda x: _shortcut(x, attributes["stride"], attributes["channels"])),
    }
    if layer.kind not in simple:
        raise BuddysimError(f"{network.name}: layer {layer.name!r}: kind {layer.kind} can't be trained here")
    return simple[layer.kind]()


def _shortcut(values: torch.Tensor, stride: tuple[int, int], channels: int) -> torch.Tensor:
    """Take every n-th row and column and append channels of zeros (option A of He et al., CVPR 2016)."""
    strided = values[:, :, :: stride[0], :: stride[1]]
    return functional.pad(strided, (0, 0, 0, 0, 0, channels - strided.shape[1]))
