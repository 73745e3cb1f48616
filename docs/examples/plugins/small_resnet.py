"""A network of your own: a residual network of seven CONV layers for CIFAR-10."""

from __future__ import annotations

from buddysim.training import Network, NetworkBuilder


def build() -> Network:
    net = NetworkBuilder("small-resnet", (3, 32, 32), "of my own", "7 CONV layers in three residual blocks, CIFAR-10")
    net.add("conv", name="stem", channels=16, kernel=3, pad=1, bias=False)
    net.add("batchnorm")
    last = net.add("relu")
    for block in (1, 2, 3):
        net.add("conv", name=f"block{block}/conv1", inputs=last, channels=16, kernel=3, pad=1, bias=False)
        net.add("batchnorm")
        net.add("relu")
        net.add("conv", name=f"block{block}/conv2", channels=16, kernel=3, pad=1, bias=False)
        residual = net.add("batchnorm")
        net.add("add", inputs=[last, residual])
        last = net.add("relu")
    net.add("avgpool")
    net.add("fc", features=10)
    net.add("softmax")
    return net.build()


NETWORKS = {"small-resnet": build}
