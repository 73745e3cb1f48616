"""MobileNet v1 (Howard et al. 2017, Table 1), width 1: depthwise CONV of 3x3, each followed by one of 1x1."""

from __future__ import annotations

from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network, Shape
from buddysim.training.zoo._blocks import close, conv_norm

# Stride of each depthwise CONV, channels of the 1x1 CONV after it.
_PAIRS = (
    (1, 64),
    (2, 128),
    (1, 128),
    (2, 256),
    (1, 256),
    (2, 512),
    *((1, 512),) * 5,
    (2, 1024),
    (1, 1024),
)
_SOURCE = "Howard et al. 2017, arXiv:1704.04861, Table 1"


def _mobilenet() -> Network:
    return _layers("mobilenet", (3, 224, 224), 2, 1000, _SOURCE, "27 CONV layers, 13 of them depthwise, ImageNet")


def _mobilenet_cifar10() -> Network:
    source = f"{_SOURCE}; assumed: a first CONV of stride 1, for 32x32 images"
    return _layers("mobilenet-cifar10", (3, 32, 32), 1, 10, source, "27 CONV layers, 13 of them depthwise, CIFAR-10")


def _layers(name: str, shape: Shape, first_stride: int, classes: int, source: str, description: str) -> Network:
    net = NetworkBuilder(name, shape, source, description)
    conv_norm(net, "conv1", 32, kernel=3, stride=first_stride, pad=1)
    wide = 32
    for number, (stride, channels) in enumerate(_PAIRS, start=2):
        conv_norm(net, f"conv{number}/dw", wide, kernel=3, stride=stride, pad=1, groups=wide)
        conv_norm(net, f"conv{number}/pw", channels, kernel=1)
        wide = channels
    net.add("avgpool", name="pool")
    close(net, "fc", classes)
    return net.build()


NETWORKS = {"mobilenet": _mobilenet, "mobilenet-cifar10": _mobilenet_cifar10}
