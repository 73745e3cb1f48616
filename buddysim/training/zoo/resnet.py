"""ResNets (He et al., CVPR 2016).

For ImageNet (Table 1, projection shortcuts where the shape changes, option B): ``resnet18`` to ``resnet152``; the
bottleneck's stride lies in its 3x3 CONV, as torchvision has it.
For CIFAR-10 (Section 4.2, shortcuts without parameters, option A): ``resnet20`` to ``resnet1202`` with 6n+2 layers,
and ``plain20`` without shortcuts. Gist trains 509 and 851 layers too: 3m+2 with m bottleneck blocks; how it spreads m
over the three stages isn't published; here it is as even as possible, earlier stages first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network, Shape
from buddysim.training.zoo._blocks import close, conv_norm

Block = Callable[[NetworkBuilder, str, int, int], None]

IMAGENET = (3, 224, 224)
CIFAR10 = (3, 32, 32)
_PAPER = "He et al., CVPR 2016"
_WIDENS = 4

_STAGES = {
    "resnet18": (2, 2, 2, 2),
    "resnet34": (3, 4, 6, 3),
    "resnet50": (3, 4, 6, 3),
    "resnet101": (3, 4, 23, 3),
    "resnet152": (3, 8, 36, 3),
}
_BASIC = ("resnet18", "resnet34")
_CIFAR_DEPTHS = (20, 32, 44, 56, 110, 1202)
_GIST_DEPTHS = (509, 851)


def _imagenet(name: str) -> Network:
    block = _basic_b if name in _BASIC else _bottleneck
    net = NetworkBuilder(name, IMAGENET, f"{_PAPER}, Table 1; torchvision", f"{name[6:]} layers, ImageNet")
    conv_norm(net, "conv1", 64, kernel=7, stride=2, pad=3)
    net.add("maxpool", name="pool1", kernel=3, stride=2, pad=1)
    _stages(net, block, (64, 128, 256, 512), _STAGES[name], first=2)
    net.add("avgpool", name="pool5")
    close(net, "fc", 1000)
    return net.build()


def _imagenet_at_32(name: str) -> Network:
    block = _basic_b if name in _BASIC else _bottleneck
    source = f"{_PAPER}, Table 1; assumed: a first CONV of 3x3, stride 1, and no first pooling, for 32x32 images"
    net = NetworkBuilder(f"{name}-cifar10", CIFAR10, source, f"the blocks of {name}, CIFAR-10")
    conv_norm(net, "conv1", 64, kernel=3, pad=1)
    _stages(net, block, (64, 128, 256, 512), _STAGES[name], first=2)
    net.add("avgpool", name="pool5")
    close(net, "fc", 10)
    return net.build()


def _cifar(depth: int) -> Network:
    blocks = (depth - 2) // 6
    net = NetworkBuilder(f"resnet{depth}", CIFAR10, f"{_PAPER}, Section 4.2", f"{depth} layers (6n+2), CIFAR-10")
    conv_norm(net, "conv1", 16, kernel=3, pad=1)
    _stages(net, _basic_a, (16, 32, 64), (blocks,) * 3, first=1)
    net.add("avgpool", name="pool")
    close(net, "fc", 10)
    return net.build()


def _gist(depth: int) -> Network:
    count = (depth - 2) // 3
    spread = [count // 3 + (stage < count % 3) for stage in range(3)]
    source = f"{_PAPER}, Section 4.2; depth of Jain et al., ISCA 2018; assumed: blocks spread evenly over the stages"
    net = NetworkBuilder(f"resnet{depth}", CIFAR10, source, f"{depth} layers (3m+2, bottlenecks), CIFAR-10")
    conv_norm(net, "conv1", 16, kernel=3, pad=1)
    _stages(net, _bottleneck, (16, 32, 64), spread, first=1)
    net.add("avgpool", name="pool")
    close(net, "fc", 10)
    return net.build()


def _plain20(name: str, shape: Shape, classes: int, data: str, source: str) -> Network:
    net = NetworkBuilder(name, shape, source, f"20 layers, no shortcuts, {data}")
    conv_norm(net, "conv1", 16, kernel=3, pad=1)
    _stages(net, _plain, (16, 32, 64), (3, 3, 3), first=1)
    net.add("avgpool", name="pool")
    close(net, "fc", classes)
    return net.build()


def _stages(net: NetworkBuilder, block: Block, channels: Sequence[int], counts: Sequence[int], first: int) -> None:
    """Stages of blocks, the first block of each but the first stage at stride 2."""
    for stage, (wide, count) in enumerate(zip(channels, counts, strict=True)):
        for number in range(1, count + 1):
            block(net, f"conv{first + stage}_{number}", wide, 2 if stage and number == 1 else 1)


def _joined(net: NetworkBuilder, name: str, branch: int, shortcut: int) -> None:
    net.add("add", name=f"{name}/add", inputs=[branch, shortcut])
    net.add("relu", name=f"{name}/relu")


def _basic_a(net: NetworkBuilder, name: str, channels: int, stride: int) -> None:
    start = net.last
    _plain(net, name, channels, stride, relu=False)
    branch, shortcut = net.last, start
    if net.shape(start) != net.shape(branch):
        shortcut = net.add("shortcut", name=f"{name}/shortcut", inputs=start, channels=channels, stride=stride)
    _joined(net, name, branch, shortcut)


def _basic_b(net: NetworkBuilder, name: str, channels: int, stride: int) -> None:
    start = net.last
    _plain(net, name, channels, stride, relu=False)
    branch = net.last
    _joined(net, name, branch, _projected(net, name, start, branch, stride))


def _bottleneck(net: NetworkBuilder, name: str, channels: int, stride: int) -> None:
    start = net.last
    conv_norm(net, f"{name}/1x1_reduce", channels, kernel=1)
    conv_norm(net, f"{name}/3x3", channels, kernel=3, stride=stride, pad=1)
    branch = conv_norm(net, f"{name}/1x1_increase", _WIDENS * channels, relu=False, kernel=1)
    _joined(net, name, branch, _projected(net, name, start, branch, stride))


def _plain(net: NetworkBuilder, name: str, channels: int, stride: int, relu: bool = True) -> None:
    conv_norm(net, f"{name}/3x3_1", channels, kernel=3, stride=stride, pad=1)
    conv_norm(net, f"{name}/3x3_2", channels, relu=relu, kernel=3, pad=1)


def _projected(net: NetworkBuilder, name: str, start: int, branch: int, stride: int) -> int:
    """The shortcut of a block: its input, projected where the output has another shape."""
    if net.shape(start) == net.shape(branch):
        return start
    channels = net.shape(branch)[0]
    return conv_norm(net, f"{name}/1x1_proj", channels, after=start, relu=False, kernel=1, stride=stride)


NETWORKS = (
    {name: partial(_imagenet, name) for name in _STAGES}
    | {f"{name}-cifar10": partial(_imagenet_at_32, name) for name in ("resnet18", "resnet34", "resnet50")}
    | {f"resnet{depth}": partial(_cifar, depth) for depth in _CIFAR_DEPTHS}
    | {f"resnet{depth}": partial(_gist, depth) for depth in _GIST_DEPTHS}
    | {
        "plain20": partial(_plain20, "plain20", CIFAR10, 10, "CIFAR-10", f"{_PAPER}, Section 4.2"),
        "plain20-imagenet": partial(
            _plain20,
            "plain20-imagenet",
            IMAGENET,
            1000,
            "ImageNet",
            f"{_PAPER}, Section 4.2; assumed: the same layers on 224x224 images, 1000 classes",
        ),
    }
)
