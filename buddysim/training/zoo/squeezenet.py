"""SqueezeNet (Iandola et al. 2016): ``squeezenet`` is v1.0, the paper's Table 1, ``squeezenet-1.1`` the authors' v1.1.

Buddy Compression measures v1.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network
from buddysim.training.zoo._blocks import conv_relu

_IMAGENET = (3, 224, 224)
_CIFAR10 = (3, 32, 32)
# Channels that a fire module squeezes to, and expands to by 1x1 and by 3x3 each; None: pooling.
_FIRES: dict[str, tuple[tuple[int, int] | None, ...]] = {
    "1.0": ((16, 64), (16, 64), (32, 128), None, (32, 128), (48, 192), (48, 192), (64, 256), None, (64, 256)),
    "1.1": ((16, 64), (16, 64), None, (32, 128), (32, 128), None, (48, 192), (48, 192), (64, 256), (64, 256)),
}


def _squeezenet() -> Network:
    net = NetworkBuilder(
        "squeezenet",
        _IMAGENET,
        "Iandola et al. 2016, arXiv:1602.07360, Table 1; DeepScale/SqueezeNet, SqueezeNet_v1.0",
        "v1.0: 26 CONV layers in 8 fire modules and around them, ImageNet",
    )
    conv_relu(net, "conv1", "relu_conv1", 96, kernel=7, stride=2)
    net.add("maxpool", name="pool1", kernel=3, stride=2, ceil=True)
    _fires(net, _FIRES["1.0"])
    return _closed(net, 1000)


def _squeezenet_1_1() -> Network:
    net = NetworkBuilder(
        "squeezenet-1.1",
        _IMAGENET,
        "DeepScale/SqueezeNet, SqueezeNet_v1.1",
        "v1.1: 26 CONV layers in 8 fire modules and around them, ImageNet",
    )
    conv_relu(net, "conv1", "relu_conv1", 64, kernel=3, stride=2)
    net.add("maxpool", name="pool1", kernel=3, stride=2, ceil=True)
    _fires(net, _FIRES["1.1"])
    return _closed(net, 1000)


def _squeezenet_cifar10() -> Network:
    net = NetworkBuilder(
        "squeezenet-cifar10",
        _CIFAR10,
        "assumed: squeezenet with a first CONV of 3x3, stride 1, and its pooling layers of 2x2, for 32x32 images",
        "v1.0's fire modules, CIFAR-10",
    )
    conv_relu(net, "conv1", "relu_conv1", 96, kernel=3, pad=1)
    net.add("maxpool", name="pool1", kernel=2)
    _fires(net, _FIRES["1.0"], pool_kernel=2)
    return _closed(net, 10)


def _fires(net: NetworkBuilder, modules: Sequence[tuple[int, int] | None], pool_kernel: int = 3) -> None:
    number = 2
    for module in modules:
        if module is None:
            net.add("maxpool", name=f"pool{number - 1}", kernel=pool_kernel, stride=2, ceil=True)
            continue
        squeezed, expanded = module
        fire = f"fire{number}"
        squeeze = conv_relu(net, f"{fire}/squeeze1x1", f"{fire}/relu_squeeze1x1", squeezed, kernel=1)
        narrow = conv_relu(net, f"{fire}/expand1x1", f"{fire}/relu_expand1x1", expanded, after=squeeze, kernel=1)
        wide = conv_relu(net, f"{fire}/expand3x3", f"{fire}/relu_expand3x3", expanded, after=squeeze, kernel=3, pad=1)
        net.add("concat", name=f"{fire}/concat", inputs=[narrow, wide])
        number += 1


def _closed(net: NetworkBuilder, classes: int) -> Network:
    net.add("dropout", name="drop9")
    conv_relu(net, "conv10", "relu_conv10", classes, kernel=1)
    net.add("avgpool", name="pool10")
    net.add("softmax", name="softmax")
    return net.build()


NETWORKS = {
    "squeezenet": _squeezenet,
    "squeezenet-1.1": _squeezenet_1_1,
    "squeezenet-cifar10": _squeezenet_cifar10,
}
