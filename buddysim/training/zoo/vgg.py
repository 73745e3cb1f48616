"""VGG (Simonyan and Zisserman, ICLR 2015, Table 1), and the deeper ones of vDNN's case study.

``vgg11``, ``vgg13``, ``vgg16`` and ``vgg19`` are the configurations A, B, D and E. What the vDNN paper calls VGG-16
is ``vgg19``: it counts the CONV layers; ``vgg16-vdnn`` is the same under the paper's name. Each further hundred CONV
layers (``vgg116`` to ``vgg416``) adds 20 to each of the five groups of ``vgg19`` (vDNN, Section IV-C).
"""

from __future__ import annotations

from functools import partial

from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network

_GROUP_CHANNELS = (64, 128, 256, 512, 512)
_CONV_PER_GROUP: dict[str, tuple[int, ...]] = {
    "vgg11": (1, 1, 2, 2, 2),
    "vgg13": (2, 2, 2, 2, 2),
    "vgg16": (2, 2, 3, 3, 3),
    "vgg19": (2, 2, 4, 4, 4),
}
_CONV_PER_GROUP |= {
    f"vgg{steps}16": tuple(count + 20 * steps for count in _CONV_PER_GROUP["vgg19"]) for steps in (1, 2, 3, 4)
}
#: ``vgg19`` under the name that the vDNN paper has for it.
_PAPERS_NAME = "vgg16-vdnn"
_SOURCE = "Simonyan and Zisserman, ICLR 2015, Table 1"
_DEEPER_SOURCE = f"{_SOURCE} (E), deepened as in Rhu et al., MICRO 2016, Section IV-C"


def _vgg(name: str, groups: tuple[int, ...]) -> Network:
    deeper = sum(groups) > 16
    convs = sum(groups)
    alias = "; the vDNN paper's VGG-16" if groups == _CONV_PER_GROUP["vgg19"] else ""
    net = NetworkBuilder(
        name, (3, 224, 224), _DEEPER_SOURCE if deeper else _SOURCE, f"{convs} CONV and 3 FC layers, ImageNet{alias}"
    )
    _features(net, groups)
    for number, features in ((6, 4096), (7, 4096)):
        net.add("fc", name=f"fc{number}", features=features)
        net.add("relu", name=f"relu{number}")
        net.add("dropout", name=f"drop{number}")
    net.add("fc", name="fc8", features=1000)
    net.add("softmax", name="softmax")
    return net.build()


def _vgg_cifar10(name: str, groups: tuple[int, ...]) -> Network:
    net = NetworkBuilder(
        name,
        (3, 32, 32),
        f"{_SOURCE}; assumed: 32x32 images end as 512 features, read by one FC layer",
        f"{sum(groups)} CONV layers and one FC layer, CIFAR-10",
    )
    _features(net, groups)
    net.add("fc", name="fc6", features=10)
    net.add("softmax", name="softmax")
    return net.build()


def _features(net: NetworkBuilder, groups: tuple[int, ...]) -> None:
    for group, (count, channels) in enumerate(zip(groups, _GROUP_CHANNELS, strict=True), start=1):
        for step in range(1, count + 1):
            net.add("conv", name=f"conv{group}_{step}", channels=channels, kernel=3, pad=1)
            net.add("relu", name=f"relu{group}_{step}")
        net.add("maxpool", name=f"pool{group}", kernel=2)


NETWORKS = (
    {name: partial(_vgg, name, groups) for name, groups in _CONV_PER_GROUP.items()}
    | {_PAPERS_NAME: partial(_vgg, _PAPERS_NAME, _CONV_PER_GROUP["vgg19"])}
    | {
        f"{name}-cifar10": partial(_vgg_cifar10, f"{name}-cifar10", _CONV_PER_GROUP[name])
        for name in ("vgg11", "vgg13", "vgg16", "vgg19")
    }
)
