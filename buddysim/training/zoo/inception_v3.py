"""Inception v3 (Szegedy et al., CVPR 2016, Table 1, Figs. 5 to 7), without its auxiliary classifier.

Convolutions have no biases; a batch normalisation and a ReLU follow each. Channels are those of CNTK's example
(``InceptionV3.bs``), which are TensorFlow's and torchvision's. It is Gist's "Inception"
(`buddysim.papers.gist.paper_networks`).
"""

from __future__ import annotations

from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network
from buddysim.training.zoo._blocks import close, conv_norm

#: Channels and kernel of a CONV layer.
Step = tuple[int, int | tuple[int, int]]

# Channels of the 1x1 CONV behind the pooling of the modules at 35 x 35, of the 7x7 branches of those at 17 x 17.
_FIGURE_5 = (32, 64, 64)
_FIGURE_6 = (128, 160, 160, 192)


def _inception_v3() -> Network:
    net = NetworkBuilder(
        "inception-v3",
        (3, 299, 299),
        "Szegedy et al., CVPR 2016 (arXiv 1512.00567), Table 1; channels of microsoft/CNTK, InceptionV3.bs",
        "Inception v3: 11 modules with batch normalisation, ImageNet at 299x299",
    )
    conv_norm(net, "conv1", 32, kernel=3, stride=2)
    conv_norm(net, "conv2", 32, kernel=3)
    conv_norm(net, "conv3", 64, kernel=3, pad=1)
    net.add("maxpool", name="pool1", kernel=3, stride=2)
    conv_norm(net, "conv4", 80, kernel=1)
    conv_norm(net, "conv5", 192, kernel=3)
    net.add("maxpool", name="pool2", kernel=3, stride=2)
    for number, projected in enumerate(_FIGURE_5, 1):
        _figure_5(net, f"mixed{number}", projected)
    _halving(net, "mixed4", ((384, 3),), ((64, 1), (96, 3), (96, 3)))
    for number, narrow in enumerate(_FIGURE_6, 5):
        _figure_6(net, f"mixed{number}", narrow)
    _halving(net, "mixed9", ((192, 1), (320, 3)), ((192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3)))
    for number in (10, 11):
        _figure_7(net, f"mixed{number}")
    net.add("avgpool", name="global_pool")
    net.add("dropout", name="drop")
    close(net, "fc", 1000)
    return net.build()


def _figure_5(net: NetworkBuilder, name: str, projected: int) -> None:
    start = net.last
    branches = [
        _chain(net, f"{name}/1x1", start, (64, 1)),
        _chain(net, f"{name}/5x5", start, (48, 1), (64, 5)),
        _chain(net, f"{name}/double", start, (64, 1), (96, 3), (96, 3)),
        _projected(net, name, start, projected),
    ]
    net.add("concat", name=name, inputs=branches)


def _figure_6(net: NetworkBuilder, name: str, narrow: int) -> None:
    start = net.last
    branches = [
        _chain(net, f"{name}/1x1", start, (192, 1)),
        _chain(net, f"{name}/7x7", start, (narrow, 1), (narrow, (1, 7)), (192, (7, 1))),
        _chain(
            net, f"{name}/double", start,
            (narrow, 1), (narrow, (7, 1)), (narrow, (1, 7)), (narrow, (7, 1)), (192, (1, 7)),
        ),
        _projected(net, name, start, 192),
    ]  # fmt: skip
    net.add("concat", name=name, inputs=branches)


def _figure_7(net: NetworkBuilder, name: str) -> None:
    start = net.last
    branches = [_chain(net, f"{name}/1x1", start, (320, 1))]
    for branch, steps in (("3x3", ((384, 1),)), ("double", ((448, 1), (384, 3)))):
        fork = _chain(net, f"{name}/{branch}", start, *steps)
        for side, kernel in (("a", (1, 3)), ("b", (3, 1))):
            branches.append(_chain(net, f"{name}/{branch}/{side}", fork, (384, kernel)))
    branches.append(_projected(net, name, start, 192))
    net.add("concat", name=name, inputs=branches)


def _halving(net: NetworkBuilder, name: str, *branches: tuple[Step, ...]) -> None:
    """A module of stride 2: the last CONV of each branch halves, and pooling passes its channels on."""
    start = net.last
    made = []
    for number, steps in enumerate(branches, 1):
        made.append(_chain(net, f"{name}/branch{number}", start, *steps, stride=2))
    made.append(net.add("maxpool", name=f"{name}/pool", inputs=start, kernel=3, stride=2))
    net.add("concat", name=name, inputs=made)


def _projected(net: NetworkBuilder, name: str, start: int, channels: int) -> int:
    net.add("avgpool", name=f"{name}/pool", inputs=start, kernel=3, stride=1, pad=1)
    return _chain(net, f"{name}/pool_proj", net.last, (channels, 1))


def _chain(net: NetworkBuilder, name: str, start: int, *steps: Step, stride: int = 1) -> int:
    """CONV layers in a row, padded to keep their extents; the last one of stride 2, unpadded, halves them."""
    last = start
    for number, (channels, kernel) in enumerate(steps, 1):
        halves = stride > 1 and number == len(steps)
        pads = 0 if halves else tuple(extent // 2 for extent in kernel) if isinstance(kernel, tuple) else kernel // 2
        last = conv_norm(
            net, f"{name}/{number}", channels, after=last, kernel=kernel, stride=stride if halves else 1, pad=pads
        )
    return last


NETWORKS = {"inception-v3": _inception_v3}
