"""Network in Network (Lin, Chen and Yan, ICLR 2014): each CONV is followed by two of 1x1, the classes by a global mean.

``nin`` is the authors' ImageNet model in Caffe's zoo, ``nin-cifar10`` their CIFAR-10 model.
"""

from __future__ import annotations

from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network
from buddysim.training.zoo._blocks import conv_relu


def _nin() -> Network:
    net = NetworkBuilder(
        "nin",
        (3, 224, 224),
        "Lin et al., ICLR 2014; the authors' nin_imagenet of Caffe's model zoo",
        "12 CONV layers, 8 of them 1x1, ImageNet",
    )
    _block(net, 1, (96, 96, 96), kernel=11, stride=4)
    net.add("maxpool", name="pool1", kernel=3, stride=2, ceil=True)
    _block(net, 2, (256, 256, 256), kernel=5, pad=2)
    net.add("maxpool", name="pool2", kernel=3, stride=2, ceil=True)
    _block(net, 3, (384, 384, 384), kernel=3, pad=1)
    net.add("maxpool", name="pool3", kernel=3, stride=2, ceil=True)
    net.add("dropout", name="drop")
    _block(net, 4, (1024, 1024, 1000), kernel=3, pad=1)
    net.add("avgpool", name="pool4")
    net.add("softmax", name="softmax")
    return net.build()


def _nin_cifar10() -> Network:
    net = NetworkBuilder(
        "nin-cifar10",
        (3, 32, 32),
        "Lin et al., ICLR 2014; the authors' nin_cifar10 of Caffe's model zoo",
        "9 CONV layers, 6 of them 1x1, CIFAR-10",
    )
    _block(net, 1, (192, 160, 96), kernel=5, pad=2)
    net.add("maxpool", name="pool1", kernel=3, stride=2, ceil=True)
    net.add("dropout", name="drop1")
    _block(net, 2, (192, 192, 192), kernel=5, pad=2)
    net.add("avgpool", name="pool2", kernel=3, stride=2, ceil=True)
    net.add("dropout", name="drop2")
    _block(net, 3, (192, 192, 10), kernel=3, pad=1)
    net.add("avgpool", name="pool3")
    net.add("softmax", name="softmax")
    return net.build()


def _block(net: NetworkBuilder, number: int, channels: tuple[int, int, int], **window: int) -> None:
    conv_relu(net, f"conv{number}", f"relu{number}", channels[0], **window)
    for step, wide in enumerate(channels[1:], start=1):
        conv_relu(net, f"cccp{number}_{step}", f"relu{number}_{step}", wide, kernel=1)


NETWORKS = {"nin": _nin, "nin-cifar10": _nin_cifar10}
