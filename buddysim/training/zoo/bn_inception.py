"""BN-Inception, Inception v2 (Ioffe and Szegedy, ICML 2015, Fig. 5), as the Caffe model in circulation has it.

Its modules replace the 5x5 filters of GoogLeNet by two of 3x3; a CONV has both a bias and a batch normalisation there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network
from buddysim.training.zoo._blocks import close, conv_norm

# Channels: 1x1; 3x3 reduced, 3x3; double 3x3 reduced, double 3x3; 1x1 after pooling; kind of pooling.
_KEEPING = {
    "3a": (64, 64, 64, 64, 96, 32, "avgpool"),
    "3b": (64, 64, 96, 64, 96, 64, "avgpool"),
    "4a": (224, 64, 96, 96, 128, 128, "avgpool"),
    "4b": (192, 96, 128, 96, 128, 128, "avgpool"),
    "4c": (160, 128, 160, 128, 160, 128, "avgpool"),
    "4d": (96, 128, 192, 160, 192, 128, "avgpool"),
    "5a": (352, 192, 320, 160, 224, 128, "avgpool"),
    "5b": (352, 192, 320, 192, 224, 128, "maxpool"),
}
# Modules of stride 2: 3x3 reduced, 3x3; double 3x3 reduced, double 3x3; pooling passes its channels on.
_HALVING = {"3c": (128, 160, 64, 96), "4e": (128, 192, 192, 256)}
_ORDER = ("3a", "3b", "3c", "4a", "4b", "4c", "4d", "4e", "5a", "5b")


def _bn_inception() -> Network:
    net = NetworkBuilder(
        "bn-inception",
        (3, 224, 224),
        "Ioffe and Szegedy, ICML 2015, Fig. 5; layer table of Cadene/pretrained-models.pytorch, bninception.py",
        "Inception v2: 10 modules with batch normalisation, ImageNet",
    )
    _conv(net, "conv1/7x7_s2", 64, kernel=7, stride=2, pad=3)
    net.add("maxpool", name="pool1/3x3_s2", kernel=3, stride=2, ceil=True)
    _conv(net, "conv2/3x3_reduce", 64, kernel=1)
    _conv(net, "conv2/3x3", 192, kernel=3, pad=1)
    net.add("maxpool", name="pool2/3x3_s2", kernel=3, stride=2, ceil=True)
    for module in _ORDER:
        if module in _HALVING:
            _halving(net, f"inception_{module}", _HALVING[module])
        else:
            _keeping(net, f"inception_{module}", _KEEPING[module])
    net.add("avgpool", name="global_pool")
    close(net, "fc", 1000)
    return net.build()


def _conv(net: NetworkBuilder, name: str, channels: int, after: int | None = None, **shape: Any) -> int:
    return conv_norm(net, name, channels, after=after, bias=True, **shape)


def _keeping(net: NetworkBuilder, name: str, module: tuple[int, int, int, int, int, int, str]) -> None:
    channels_1x1, reduced, wide, double_reduced, double, projected, pooling = module
    start = net.last
    branches = [_conv(net, f"{name}/1x1", channels_1x1, after=start, kernel=1)]
    _conv(net, f"{name}/3x3_reduce", reduced, after=start, kernel=1)
    branches.append(_conv(net, f"{name}/3x3", wide, kernel=3, pad=1))
    branches.append(_double(net, name, start, (double_reduced, double), stride=1))
    net.add(pooling, name=f"{name}/pool", inputs=start, kernel=3, stride=1, pad=1)
    branches.append(_conv(net, f"{name}/pool_proj", projected, kernel=1))
    net.add("concat", name=f"{name}/output", inputs=branches)


def _halving(net: NetworkBuilder, name: str, module: Sequence[int]) -> None:
    reduced, wide, double_reduced, double = module
    start = net.last
    _conv(net, f"{name}/3x3_reduce", reduced, after=start, kernel=1)
    branches = [_conv(net, f"{name}/3x3", wide, kernel=3, stride=2, pad=1)]
    branches.append(_double(net, name, start, (double_reduced, double), stride=2))
    branches.append(net.add("maxpool", name=f"{name}/pool", inputs=start, kernel=3, stride=2, ceil=True))
    net.add("concat", name=f"{name}/output", inputs=branches)


def _double(net: NetworkBuilder, name: str, start: int, channels: tuple[int, int], stride: int) -> int:
    reduced, wide = channels
    _conv(net, f"{name}/double_3x3_reduce", reduced, after=start, kernel=1)
    _conv(net, f"{name}/double_3x3_1", wide, kernel=3, pad=1)
    return _conv(net, f"{name}/double_3x3_2", wide, kernel=3, stride=stride, pad=1)


NETWORKS = {"bn-inception": _bn_inception}
