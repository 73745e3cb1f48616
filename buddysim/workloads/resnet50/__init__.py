"""ResNet-50: an image classifier of residual blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.workloads.training import images
from buddysim.workloads.training.optimizers import momentum
from buddysim.workloads.training.problem import StudyNetwork, TrainingProblem, of_paper

if TYPE_CHECKING:
    import torch

ORDER = 160
SUMMARY = "ResNet-50 in training: sixteen residual blocks of three convolutions; Fashion-MNIST"
PAPER = "ResNet50"
WHY = "Feature maps after ReLU are partly zeros, scattered; block sums and normalised ones are at full precision."
_STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
_EXPANSION = 4


def build(problem: TrainingProblem) -> torch.nn.Module:
    """ResNet-50 of He et al. 2016, with the stride in the 3 x 3 convolution."""
    from torch import nn

    from buddysim.workloads.training.layers import unit, width_of

    class ResidualBlock(nn.Module):  # type: ignore[misc]
        def __init__(self, inputs: int, inner: int, outputs: int, stride: int) -> None:
            super().__init__()
            last = nn.Sequential(nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
            self.steps = nn.Sequential(unit(inputs, inner, 1), unit(inner, inner, 3, stride), last)
            shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            same = inputs == outputs and stride == 1
            self.shortcut = nn.Identity() if same else nn.Sequential(shortcut, nn.BatchNorm2d(outputs))
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x: Any) -> Any:
            total = self.steps(x)
            total += self.shortcut(x)
            return self.relu(total)

    wide = width_of(problem)
    layers: list[nn.Module] = [unit(3, wide(64), 7, stride=2), nn.MaxPool2d(3, 2, 1)]
    channels = wide(64)
    for inner, count, first_stride in _STAGES:
        for number in range(count):
            outputs = _EXPANSION * wide(inner)
            layers.append(ResidualBlock(channels, wide(inner), outputs, first_stride if number == 0 else 1))
            channels = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, images.CLASSES))


NETWORK = StudyNetwork(build, images.batches, momentum)
PROBLEMS = {
    "small": {
        "profile": TrainingProblem(16, 64, 0.125, 300, 0.005, 1, 0, 20),
        "replay": TrainingProblem(16, 64, 0.125, 300, 0.005, 2, 1, 20),
    },
    "medium": {
        "profile": TrainingProblem(14, 64, 0.375, 450, 0.005, 1, 0, 90),
        "replay": TrainingProblem(14, 64, 0.375, 450, 0.005, 2, 1, 90),
    },
}
PROBLEMS["paper"] = of_paper(PROBLEMS["medium"], 32)
