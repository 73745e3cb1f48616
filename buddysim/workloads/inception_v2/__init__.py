"""Inception v2: an image classifier of branches side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.workloads.training import images
from buddysim.workloads.training.optimizers import momentum
from buddysim.workloads.training.problem import StudyNetwork, TrainingProblem, of_paper

if TYPE_CHECKING:
    import torch

ORDER = 130
NAME = "inception_v2"
SUMMARY = "Inception v2 in training: ten blocks of four branches, normalised; Fashion-MNIST"
PAPER = "Inception_V2"
WHY = "Feature maps after ReLU are half zeros, scattered; feature maps before it stay at full precision."
# 1 x 1; 3 x 3 with its reduction; two 3 x 3 with their reduction; pooled. Without the first: a block of stride 2.
_BLOCKS = (
    (64, (64, 64), (64, 96), ("avg", 32)),
    (64, (64, 96), (64, 96), ("avg", 64)),
    (0, (128, 160), (64, 96), ("max", 0)),
    (224, (64, 96), (96, 128), ("avg", 128)),
    (192, (96, 128), (96, 128), ("avg", 128)),
    (160, (128, 160), (128, 160), ("avg", 128)),
    (96, (128, 192), (160, 192), ("avg", 128)),
    (0, (128, 192), (192, 256), ("max", 0)),
    (352, (192, 320), (160, 224), ("avg", 128)),
    (352, (192, 320), (192, 224), ("max", 128)),
)


def build(problem: TrainingProblem) -> torch.nn.Module:
    """Inception v2 of Ioffe and Szegedy 2015, the paper on batch normalisation."""
    from torch import nn

    from buddysim.workloads.training.layers import Branches, unit, width_of

    wide = width_of(problem)
    layers: list[nn.Module] = [
        unit(3, wide(64), 7, stride=2),
        nn.MaxPool2d(3, 2, 1),
        unit(wide(64), wide(64), 1),
        unit(wide(64), wide(192), 3),
        nn.MaxPool2d(3, 2, 1),
    ]
    channels = wide(192)
    for plain, (reduced, outputs), (reduced_twice, twice), (pool, pooled) in _BLOCKS:
        stride = 1 if plain else 2
        branches: list[nn.Module] = [unit(channels, wide(plain), 1)] if plain else []
        branches.append(nn.Sequential(unit(channels, wide(reduced), 1), unit(wide(reduced), wide(outputs), 3, stride)))
        branches.append(
            nn.Sequential(
                unit(channels, wide(reduced_twice), 1),
                unit(wide(reduced_twice), wide(twice), 3),
                unit(wide(twice), wide(twice), 3, stride),
            )
        )
        window: nn.Module = nn.AvgPool2d(3, stride, 1) if pool == "avg" else nn.MaxPool2d(3, stride, 1)
        branches.append(nn.Sequential(window, unit(channels, wide(pooled), 1)) if pooled else window)
        layers.append(Branches(branches))
        joined = wide(outputs) + wide(twice) + (wide(pooled) if pooled else channels)
        channels = joined + (wide(plain) if plain else 0)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, images.CLASSES))


NETWORK = StudyNetwork(build, images.batches, momentum)
PROBLEMS = {
    "small": {
        "profile": TrainingProblem(16, 64, 0.125, 400, 0.01, 1, 0, 22),
        "replay": TrainingProblem(16, 64, 0.125, 400, 0.01, 2, 1, 22),
    },
    "medium": {
        "profile": TrainingProblem(12, 64, 0.6, 500, 0.005, 1, 0, 110),
        "replay": TrainingProblem(12, 64, 0.6, 500, 0.005, 2, 1, 110),
    },
}
PROBLEMS["paper"] = of_paper(PROBLEMS["medium"], 64)
