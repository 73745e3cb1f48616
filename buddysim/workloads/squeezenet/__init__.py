"""SqueezeNetv1.1: an image classifier of few weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.workloads.training import images
from buddysim.workloads.training.optimizers import momentum
from buddysim.workloads.training.problem import Network, Problem

if TYPE_CHECKING:
    import torch

ORDER = 140
SUMMARY = "SqueezeNet 1.1 in training: fire modules, few weights; Fashion-MNIST"
PAPER = "SqueezeNet"
WHY = "Half of the feature maps' values are zero after ReLU, but single zeros don't make an entry small."
_FIRES = ((16, 64), (16, 64), None, (32, 128), (32, 128), None, (48, 192), (48, 192), (64, 256), (64, 256))


def build(problem: Problem) -> torch.nn.Module:
    """After Iandola et al. 2016 (github.com/forresti/SqueezeNet, v1.1); normalised, or so few steps don't train it."""
    from torch import nn

    from buddysim.workloads.training.layers import Branches, unit, width_of

    wide = width_of(problem)
    layers: list[nn.Module] = [unit(3, wide(64), 3, stride=2), nn.MaxPool2d(3, 2, ceil_mode=True)]
    channels = wide(64)
    for fire in _FIRES:
        if fire is None:
            layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
            continue
        squeezed, expanded = map(wide, fire)
        expand = Branches([unit(squeezed, expanded, 1), unit(squeezed, expanded, 3)])
        layers += [unit(channels, squeezed, 1), expand]
        channels = 2 * expanded
    last = [nn.Dropout(), nn.Conv2d(channels, images.CLASSES, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, *last)


NETWORK = Network(build, images.batches, momentum)
PROBLEMS = {
    "small": {
        "profile": Problem(16, 32, 0.5, 200, 0.01, 1, 0, 15),
        "replay": Problem(16, 32, 0.5, 200, 0.01, 2, 1, 15),
    },
    "medium": {"profile": Problem(28, 64, 1, 300, 0.02, 1, 0, 60), "replay": Problem(28, 64, 1, 300, 0.02, 2, 1, 60)},
}
