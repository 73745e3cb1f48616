"""AlexNet, one tower and two groups.

``alexnet`` is the single-tower variant of "One weird trick" (Krizhevsky 2014) as convnet-benchmarks has it, without
dropout: vDNN and Gist measure this one. ``alexnet-caffe`` is Caffe's bvlc_alexnet, after Krizhevsky et al. 2012: 96
filters of 11x11 give 96x55x55, two groups, LRN before each pooling; cDMA measures this one.
"""

from __future__ import annotations

from typing import Any

from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network


def _alexnet() -> Network:
    net = NetworkBuilder(
        "alexnet",
        (3, 224, 224),
        "soumith/convnet-benchmarks, caffe/imagenet_winners/alexnet.prototxt (One weird trick, Krizhevsky 2014)",
        "5 CONV and 3 FC layers in one tower, ImageNet",
    )
    _conv(net, 1, 64, kernel=11, stride=4, pad=2)
    net.add("maxpool", name="pool1", kernel=3, stride=2)
    _conv(net, 2, 192, kernel=5, pad=2)
    net.add("maxpool", name="pool2", kernel=3, stride=2)
    _conv(net, 3, 384, kernel=3, pad=1)
    _conv(net, 4, 256, kernel=3, pad=1)
    _conv(net, 5, 256, kernel=3, pad=1)
    net.add("maxpool", name="pool5", kernel=3, stride=2)
    for number in (6, 7):
        net.add("fc", name=f"fc{number}", features=4096)
        net.add("relu", name=f"relu{number}")
    net.add("fc", name="fc8", features=1000)
    net.add("softmax", name="softmax")
    return net.build()


def _alexnet_caffe() -> Network:
    net = NetworkBuilder(
        "alexnet-caffe",
        (3, 227, 227),
        "BVLC/caffe, models/bvlc_alexnet/train_val.prototxt (Krizhevsky et al., NIPS 2012)",
        "5 CONV and 3 FC layers, two groups, LRN, ImageNet",
    )
    _conv(net, 1, 96, kernel=11, stride=4)
    net.add("lrn", name="norm1")
    net.add("maxpool", name="pool1", kernel=3, stride=2)
    _conv(net, 2, 256, kernel=5, pad=2, groups=2)
    net.add("lrn", name="norm2")
    net.add("maxpool", name="pool2", kernel=3, stride=2)
    _conv(net, 3, 384, kernel=3, pad=1)
    _conv(net, 4, 384, kernel=3, pad=1, groups=2)
    _conv(net, 5, 256, kernel=3, pad=1, groups=2)
    net.add("maxpool", name="pool5", kernel=3, stride=2)
    for number in (6, 7):
        net.add("fc", name=f"fc{number}", features=4096)
        net.add("relu", name=f"relu{number}")
        net.add("dropout", name=f"drop{number}")
    net.add("fc", name="fc8", features=1000)
    net.add("softmax", name="softmax")
    return net.build()


def _alexnet_cifar10() -> Network:
    net = NetworkBuilder(
        "alexnet-cifar10",
        (3, 32, 32),
        "assumed: the layers of alexnet with a first CONV of 3x3, stride 2, so that 32x32 images end as 256x2x2",
        "5 CONV and 3 FC layers, CIFAR-10",
    )
    _conv(net, 1, 64, kernel=3, stride=2, pad=1)
    net.add("maxpool", name="pool1", kernel=2)
    _conv(net, 2, 192, kernel=3, pad=1)
    net.add("maxpool", name="pool2", kernel=2)
    _conv(net, 3, 384, kernel=3, pad=1)
    _conv(net, 4, 256, kernel=3, pad=1)
    _conv(net, 5, 256, kernel=3, pad=1)
    net.add("maxpool", name="pool5", kernel=2)
    for number in (6, 7):
        net.add("fc", name=f"fc{number}", features=4096)
        net.add("relu", name=f"relu{number}")
        net.add("dropout", name=f"drop{number}")
    net.add("fc", name="fc8", features=10)
    net.add("softmax", name="softmax")
    return net.build()


def _conv(net: NetworkBuilder, number: int, channels: int, **shape: Any) -> None:
    net.add("conv", name=f"conv{number}", channels=channels, **shape)
    net.add("relu", name=f"relu{number}")


NETWORKS = {"alexnet": _alexnet, "alexnet-caffe": _alexnet_caffe, "alexnet-cifar10": _alexnet_cifar10}
