"""AlexNet: an image classifier whose weights are mostly those of its last three layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.workloads.training import images
from buddysim.workloads.training.optimizers import momentum
from buddysim.workloads.training.problem import StudyNetwork, TrainingProblem, of_paper

if TYPE_CHECKING:
    import torch

ORDER = 110
SUMMARY = "AlexNet in training: five convolutions, three large fully connected layers; Fashion-MNIST"
PAPER = "AlexNet"
WHY = "Weights, their gradients and momentum are most of the memory, at full precision."
_POOL = (0, 0)
_FEATURES = ((64, 3), _POOL, (192, 5), _POOL, (384, 3), (256, 3), (256, 3), _POOL)  # channels, size
_FIRST = (11, 4, 2)  # the first convolution of the original: size, stride, padding
_ORIGINAL_SIZE = 224
_FULL = 4096


def build(problem: TrainingProblem) -> torch.nn.Module:
    """AlexNet of Krizhevsky 2014 ("One weird trick"); small images have a 3 x 3 convolution first and padded pooling.

    Fully connected layers have the stated width as well.
    """
    from torch import nn

    from buddysim.workloads.training.layers import width_of

    wide = width_of(problem)
    layers: list[nn.Module] = []
    original = problem.size >= _ORIGINAL_SIZE
    pool_padding = 0 if original else 1
    channels, edge = 3, problem.size
    for number, (outputs, size) in enumerate(_FEATURES):
        if not outputs:
            layers.append(nn.MaxPool2d(3, 2, pool_padding))
            edge = (edge + 2 * pool_padding - 3) // 2 + 1
            continue
        window, stride, padding = _FIRST if original and number == 0 else (size, 1, size // 2)
        layers += [nn.Conv2d(channels, wide(outputs), window, stride, padding), nn.ReLU(inplace=True)]
        channels, edge = wide(outputs), (edge + 2 * padding - window) // stride + 1
    full = wide(_FULL)
    first = [nn.Flatten(), nn.Dropout(), nn.Linear(channels * edge**2, full), nn.ReLU(inplace=True)]
    second = [nn.Dropout(), nn.Linear(full, full), nn.ReLU(inplace=True), nn.Linear(full, images.CLASSES)]
    return nn.Sequential(*layers, *first, *second)


NETWORK = StudyNetwork(build, images.batches, momentum)
PROBLEMS = {
    "small": {
        "profile": TrainingProblem(16, 32, 0.125, 600, 0.02, 1, 0, 12),
        "replay": TrainingProblem(16, 32, 0.125, 600, 0.02, 2, 1, 12),
    },
    "medium": {
        "profile": TrainingProblem(24, 32, 0.5, 400, 0.01, 1, 0, 110),
        "replay": TrainingProblem(24, 32, 0.5, 400, 0.01, 2, 1, 110),
    },
}
PROBLEMS["paper"] = of_paper(PROBLEMS["medium"], 1024)
