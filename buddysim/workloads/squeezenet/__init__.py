"""SqueezeNetv1.1: an image classifier of few weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.workloads.training import images
from buddysim.workloads.training.optimizers import adam
from buddysim.workloads.training.problem import StudyNetwork, TrainingProblem, of_paper

if TYPE_CHECKING:
    import torch

ORDER = 140
SUMMARY = "SqueezeNet 1.1 in training: fire modules, few weights; Fashion-MNIST"
PAPER = "SqueezeNet"
WHY = "Half of the feature maps' values are zero after ReLU, but single zeros don't make an entry small."
_FIRES = ((16, 64), (16, 64), None, (32, 128), (32, 128), None, (48, 192), (48, 192), (64, 256), (64, 256))


def build(problem: TrainingProblem) -> torch.nn.Module:
    """SqueezeNet v1.1 of Iandola et al. 2016 (github.com/forresti/SqueezeNet), with weights as in He et al. 2015."""
    from torch import nn

    from buddysim.workloads.training.layers import Branches, plain_unit, width_of

    wide = width_of(problem)
    layers: list[nn.Module] = [plain_unit(3, wide(64), 3, stride=2), nn.MaxPool2d(3, 2, ceil_mode=True)]
    channels = wide(64)
    for fire in _FIRES:
        if fire is None:
            layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
            continue
        squeezed, expanded = map(wide, fire)
        expand = Branches([plain_unit(squeezed, expanded, 1), plain_unit(squeezed, expanded, 3)])
        layers += [plain_unit(channels, squeezed, 1), expand]
        channels = 2 * expanded
    classes = nn.Conv2d(channels, images.CLASSES, 1)
    return nn.Sequential(*layers, nn.Dropout(), classes, nn.AdaptiveAvgPool2d(1), nn.Flatten())


NETWORK = StudyNetwork(build, images.batches, adam)
PROBLEMS = {
    "small": {
        "profile": TrainingProblem(16, 32, 0.5, 400, 0.001, 1, 0, 10),
        "replay": TrainingProblem(16, 32, 0.5, 400, 0.001, 2, 1, 10),
    },
    "medium": {
        "profile": TrainingProblem(31, 64, 1, 300, 0.0005, 1, 0, 45),
        "replay": TrainingProblem(31, 64, 1, 300, 0.0005, 2, 1, 45),
    },
}
PROBLEMS["paper"] = of_paper(PROBLEMS["medium"], 64)
