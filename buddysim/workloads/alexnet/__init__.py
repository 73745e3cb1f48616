"""AlexNet: an image classifier whose weights are mostly those of its last three layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.workloads.training import images
from buddysim.workloads.training.optimizers import momentum
from buddysim.workloads.training.problem import Network, Problem

if TYPE_CHECKING:
    import torch

ORDER = 110
SUMMARY = "AlexNet in training: five convolutions, three large fully connected layers; Fashion-MNIST"
PAPER = "AlexNet"
WHY = "Weights, their gradients and momentum are most of the memory, at full precision."
_FEATURES = ((64, 3, 1), "pool", (192, 5, 1), "pool", (384, 3, 1), (256, 3, 1), (256, 3, 1), "pool")
_FULL = 4096


def build(problem: Problem) -> torch.nn.Module:
    """After Krizhevsky 2014 ("One weird trick"), its first convolution of 3 x 3 as images are small.

    Fully connected layers have the stated width, too.
    """
    from torch import nn

    from buddysim.workloads.training.layers import width_of

    wide = width_of(problem)
    layers: list[nn.Module] = []
    channels, edge = 3, problem.size
    for layer in _FEATURES:
        if isinstance(layer, str):
            layers.append(nn.MaxPool2d(3, 2, 1))
            edge = (edge + 1) // 2
            continue
        outputs, size, stride = layer
        layers += [nn.Conv2d(channels, wide(outputs), size, stride, size // 2), nn.ReLU(inplace=True)]
        channels = wide(outputs)
    full = wide(_FULL)
    first = [nn.Flatten(), nn.Dropout(), nn.Linear(channels * edge**2, full), nn.ReLU(inplace=True)]
    second = [nn.Dropout(), nn.Linear(full, full), nn.ReLU(inplace=True), nn.Linear(full, images.CLASSES)]
    return nn.Sequential(*layers, *first, *second)


NETWORK = Network(build, images.batches, momentum)
PROBLEMS = {
    "small": {
        "profile": Problem(16, 32, 0.125, 200, 0.02, 1, 0, 15),
        "replay": Problem(16, 32, 0.125, 200, 0.02, 2, 1, 15),
    },
    "medium": {
        "profile": Problem(24, 32, 0.5, 400, 0.01, 1, 0, 110),
        "replay": Problem(24, 32, 0.5, 400, 0.01, 2, 1, 110),
    },
}
