"""OverFeat, fast model (Sermanet et al., ICLR 2014, Table 1), as convnet-benchmarks has it: without dropout."""

from __future__ import annotations

from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network
from buddysim.training.zoo._blocks import close, conv_relu


def _overfeat() -> Network:
    net = NetworkBuilder(
        "overfeat",
        (3, 231, 231),
        "soumith/convnet-benchmarks, caffe/imagenet_winners/overfeat.prototxt (Sermanet et al., ICLR 2014, Table 1)",
        "the fast model: 5 CONV and 3 FC layers, ImageNet",
    )
    conv_relu(net, "conv1", "relu1", 96, kernel=11, stride=4)
    net.add("maxpool", name="pool1", kernel=2)
    conv_relu(net, "conv2", "relu2", 256, kernel=5)
    net.add("maxpool", name="pool2", kernel=2)
    conv_relu(net, "conv3", "relu3", 512, kernel=3, pad=1)
    conv_relu(net, "conv4", "relu4", 1024, kernel=3, pad=1)
    conv_relu(net, "conv5", "relu5", 1024, kernel=3, pad=1)
    net.add("maxpool", name="pool5", kernel=2)
    for number, features in ((6, 3072), (7, 4096)):
        net.add("fc", name=f"fc{number}", features=features)
        net.add("relu", name=f"relu{number}")
    close(net, "fc8", 1000)
    return net.build()


NETWORKS = {"overfeat": _overfeat}
