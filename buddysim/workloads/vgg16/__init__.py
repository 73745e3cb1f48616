"""VGG16: an image classifier of thirteen equal convolutions and three fully connected layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.workloads.training import images
from buddysim.workloads.training.optimizers import momentum
from buddysim.workloads.training.problem import StudyNetwork, TrainingProblem, of_paper

if TYPE_CHECKING:
    import torch

ORDER = 150
SUMMARY = "VGG16 in training: thirteen convolutions of 3 x 3; Fashion-MNIST"
PAPER = "VGG16"
WHY = "Feature maps after ReLU are half zeros, scattered; weights, gradients and momentum are at full precision."
_BLOCKS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
_FULL = 4096


def build(problem: TrainingProblem) -> torch.nn.Module:
    """VGG16 of Simonyan and Zisserman 2015 (configuration D), with convolution weights as in He et al. 2015."""
    from torch import nn

    from buddysim.workloads.training.layers import plain_unit, width_of

    wide = width_of(problem)
    layers: list[nn.Module] = []
    channels = 3
    for block in _BLOCKS:
        for outputs in block:
            layers.append(plain_unit(channels, wide(outputs), 3))
            channels = wide(outputs)
        layers.append(nn.MaxPool2d(2, 2))
    inputs, full = channels * (problem.size // 32) ** 2, wide(_FULL)
    first = [nn.Flatten(), nn.Linear(inputs, full), nn.ReLU(inplace=True), nn.Dropout()]
    second = [nn.Linear(full, full), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(full, images.CLASSES)]
    return nn.Sequential(*layers, *first, *second)


NETWORK = StudyNetwork(build, images.batches, momentum)
PROBLEMS = {
    "small": {
        "profile": TrainingProblem(16, 32, 0.125, 600, 0.01, 1, 0, 15),
        "replay": TrainingProblem(16, 32, 0.125, 600, 0.01, 2, 1, 15),
    },
    "medium": {
        "profile": TrainingProblem(26, 32, 0.375, 500, 0.01, 1, 0, 70),
        "replay": TrainingProblem(26, 32, 0.375, 500, 0.01, 2, 1, 70),
    },
}
PROBLEMS["paper"] = of_paper(PROBLEMS["medium"], 64)
