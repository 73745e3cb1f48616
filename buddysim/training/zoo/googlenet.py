"""GoogLeNet, the first Inception network (Szegedy et al., CVPR 2015, Table 1).

``googlenet`` is that of convnet-benchmarks (vDNN's): no LRN and no auxiliary classifiers. ``googlenet-caffe`` is
Caffe's bvlc_googlenet, as it trains: with LRN and both auxiliary classifiers, each with a loss of its own.
"""

from __future__ import annotations

from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network
from buddysim.training.zoo._blocks import close, conv_relu

# Channels: 1x1; 3x3 reduced, 3x3; 5x5 reduced, 5x5; 1x1 after pooling.
_MODULES = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}
_POOL_AFTER = {"3b": "pool3/3x3_s2", "4e": "pool4/3x3_s2"}
_LOSS_AFTER = {"4a": "loss1", "4d": "loss2"}
_PAPER = "Szegedy et al., CVPR 2015, Table 1"


def _googlenet() -> Network:
    source = f"soumith/convnet-benchmarks, caffe/imagenet_winners/googlenet.prototxt ({_PAPER})"
    net = NetworkBuilder("googlenet", (3, 224, 224), source, "9 Inception modules, without LRN, one loss, ImageNet")
    _layers(net, whole=False)
    return net.build()


def _googlenet_caffe() -> Network:
    source = f"BVLC/caffe, models/bvlc_googlenet/train_val.prototxt ({_PAPER})"
    net = NetworkBuilder("googlenet-caffe", (3, 224, 224), source, "9 Inception modules, LRN, three losses, ImageNet")
    _layers(net, whole=True)
    return net.build()


def _layers(net: NetworkBuilder, whole: bool) -> None:
    conv_relu(net, "conv1/7x7_s2", "conv1/relu_7x7", 64, kernel=7, stride=2, pad=3)
    net.add("maxpool", name="pool1/3x3_s2", kernel=3, stride=2, ceil=True)
    if whole:
        net.add("lrn", name="pool1/norm1")
    conv_relu(net, "conv2/3x3_reduce", "conv2/relu_3x3_reduce", 64, kernel=1)
    conv_relu(net, "conv2/3x3", "conv2/relu_3x3", 192, kernel=3, pad=1)
    if whole:
        net.add("lrn", name="conv2/norm2")
    net.add("maxpool", name="pool2/3x3_s2", kernel=3, stride=2, ceil=True)
    trunk = net.last
    for name, channels in _MODULES.items():
        trunk = _inception(net, f"inception_{name}", trunk, channels)
        if whole and name in _LOSS_AFTER:
            _auxiliary(net, _LOSS_AFTER[name])
        if name in _POOL_AFTER:
            trunk = net.add("maxpool", name=_POOL_AFTER[name], inputs=trunk, kernel=3, stride=2, ceil=True)
    net.add("avgpool", name="pool5/7x7_s1", inputs=trunk, kernel=7, stride=1)
    net.add("dropout", name="pool5/drop", probability=0.4)
    close(net, "fc6", 1000)


def _inception(net: NetworkBuilder, name: str, start: int, channels: tuple[int, int, int, int, int, int]) -> int:
    channels_1x1, reduced_3x3, wide_3x3, reduced_5x5, wide_5x5, projected = channels
    branches = [conv_relu(net, f"{name}/1x1", f"{name}/relu_1x1", channels_1x1, after=start, kernel=1)]
    conv_relu(net, f"{name}/3x3_reduce", f"{name}/relu_3x3_reduce", reduced_3x3, after=start, kernel=1)
    branches.append(conv_relu(net, f"{name}/3x3", f"{name}/relu_3x3", wide_3x3, kernel=3, pad=1))
    conv_relu(net, f"{name}/5x5_reduce", f"{name}/relu_5x5_reduce", reduced_5x5, after=start, kernel=1)
    branches.append(conv_relu(net, f"{name}/5x5", f"{name}/relu_5x5", wide_5x5, kernel=5, pad=2))
    net.add("maxpool", name=f"{name}/pool", inputs=start, kernel=3, stride=1, pad=1)
    branches.append(conv_relu(net, f"{name}/pool_proj", f"{name}/relu_pool_proj", projected, kernel=1))
    return net.add("concat", name=f"{name}/output", inputs=branches)


def _auxiliary(net: NetworkBuilder, name: str) -> None:
    """An auxiliary classifier after a module: part of the classifier although the network goes on."""
    part = "classifier"
    net.add("avgpool", name=f"{name}/ave_pool", part=part, kernel=5, stride=3)
    net.add("conv", name=f"{name}/conv", part=part, channels=128, kernel=1)
    net.add("relu", name=f"{name}/relu_conv", part=part)
    net.add("fc", name=f"{name}/fc", part=part, features=1024)
    net.add("relu", name=f"{name}/relu_fc", part=part)
    net.add("dropout", name=f"{name}/drop_fc", part=part, probability=0.7)
    net.add("fc", name=f"{name}/classifier", part=part, features=1000)
    net.add("softmax", name=f"{name}/softmax", part=part)


NETWORKS = {"googlenet": _googlenet, "googlenet-caffe": _googlenet_caffe}
