"""Accuracy of a network trained with rounded feature maps and with single precision: paired seeds on Fashion-MNIST.

``python tools/measure_gist_accuracy.py`` trains and writes what `buddysim.training.schemes` reads; stored runs are not
trained again. The paper trains for ImageNet; formats that a small network bears need not be those of a large one.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from buddysim.papers.gist.small_training import accuracy_of, train_batches
from buddysim.papers.simulated_values import SimulatedValue, simulates
from buddysim.sweep.cached_results import SavedResults
from buddysim.training.contents.observe_training import import_torch
from buddysim.training.schemes._gist_accuracy import about, difference_text

SEEDS = (1, 2, 3, 4, 5)
CONDITIONS = (
    "fp32", "delayed-fp16", "delayed-fp10", "delayed-fp8", "uniform-fp16", "uniform-fp10", "uniform-fp8",
)  # fmt: skip
LEARNING_RATE, MOMENTUM = 0.05, 0.9
NETWORK = "CONV 8, ReLU, pool, CONV 16, ReLU, CONV 16, ReLU, pool, FC 32, ReLU, FC 10"
DATA = "Fashion-MNIST (every other row and column of pixels)"


def train(condition: str, seed: int, iterations: int) -> dict[str, float]:
    """Train once: return the test accuracy in per cent, and raw over stored bytes of autograd.

    Parameters
    ----------
    condition : of `CONDITIONS`
    seed : of weights and of the order of images, the same for every condition
    """
    torch = import_torch("accuracy")
    from buddysim.gist.adapter import Gist
    from buddysim.gist.uniform import UniformPrecision

    torch.manual_seed(seed)
    module = _network(torch)
    optimizer = torch.optim.SGD(module.parameters(), LEARNING_RATE, MOMENTUM)
    kind, _, name = condition.partition("-")
    gist = Gist(module, name or None) if kind in ("delayed", "lossless") else None
    uniform: Any = UniformPrecision(module, name) if kind == "uniform" else nullcontext()
    with uniform:
        train_batches(torch, module, optimizer, iterations, lambda: gist or nullcontext())
    return {"accuracy": accuracy_of(torch, module), "ratio": gist.report.ratio if gist else 1.0}


def _network(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 9, 32), nn.ReLU(),
        nn.Linear(32, 10),
    )  # fmt: skip


@simulates("formats", "all-fp16")
def formats(training: SavedResults, id: str) -> SimulatedValue:
    kind = "delayed" if id == "formats" else "uniform"
    differences = {name: difference_text(name) for name in CONDITIONS if name.startswith(kind)}
    return SimulatedValue(
        "; ".join(f"{name.partition('-')[2].upper()} {text}" for name, text in differences.items()),
        note=f"difference to FP32 in points, five seeds, 95 % interval: {about()}",
    )


@simulates("overfeat-loss")
def overfeat(training: SavedResults) -> SimulatedValue:
    return SimulatedValue(None, note="OverFeat on ImageNet isn't trained here")
