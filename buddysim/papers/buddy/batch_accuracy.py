"""Accuracy against the minibatch (Fig. 13d): a small network with batch normalisation, trained on Fashion-MNIST.

``python tools/measure_batch_accuracy.py`` trains and writes what this module reads; stored runs are not trained again.
The paper trains ResNet50 on CIFAR-100 for 100 epochs: the effect of a minibatch on a small network may differ from its
effect on ResNet50. The learning rate is proportional to the minibatch (Goyal et al., arXiv 1706.02677); it was not
tuned.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from buddysim.base.textfile import parse_json
from buddysim.papers.buddy.buddy_study import BuddyStudy
from buddysim.papers.buddy.case_study import BATCHES, NETWORKS, samples_per_s
from buddysim.papers.simulated_values import SimulatedValue, simulates
from buddysim.training.contents.observe_training import FASHION_MNIST, import_torch, read_fashion_mnist

FILE = "accuracy.json"
MINIBATCHES = (16, 32, 64, 128, 256, 512)
SEEDS = (1, 2, 3)
EPOCHS = 10
IMAGES, TESTED = 6_000, 5_000
#: Of a minibatch of 256; divided by ten after two thirds of the epochs.
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY = 0.1, 0.9, 5e-4
NETWORK = "CONV 8, BN, ReLU, pool, CONV 16, BN, ReLU, pool, CONV 16, BN, ReLU, mean, FC 10"
DATA = f"{IMAGES:,} images of Fashion-MNIST (every other row and column of pixels), tested on {TESTED:,}"
#: Largest distance from the final accuracy, in points, and smallest fraction of the highest speed, to count as near.
NEAR_POINTS, NEAR_SPEED = 1.0, 0.9


def train(batch: int, seed: int, epochs: int = EPOCHS) -> list[float]:
    """Train once; return the accuracy on the test set in per cent after each epoch.

    Parameters
    ----------
    batch : images of a minibatch
    seed : of weights and of the order of images, the same for every minibatch
    """
    torch = import_torch("accuracy")
    images, labels, tests, answers = _data(torch)
    torch.manual_seed(seed)
    module = _network(torch)
    optimizer = torch.optim.SGD(
        module.parameters(), LEARNING_RATE * batch / 256, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY
    )
    order = torch.Generator().manual_seed(seed)
    accuracies = []
    for epoch in range(epochs):
        if epoch == round(2 * epochs / 3):
            for group in optimizer.param_groups:
                group["lr"] /= 10
        for minibatch in torch.randperm(len(images), generator=order).split(batch):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(images[minibatch]), labels[minibatch]).backward()
            optimizer.step()
        module.eval()
        with torch.no_grad():
            right = sum(int((module(x).argmax(1) == y).sum()) for x, y in zip(tests, answers, strict=True))
        module.train()
        accuracies.append(round(100 * right / sum(map(len, answers)), 2))
    return accuracies


@cache
def _data(torch: Any) -> tuple[Any, ...]:
    images, labels = map(torch.from_numpy, read_fashion_mnist(FASHION_MNIST, "train"))
    tests, answers = map(torch.from_numpy, read_fashion_mnist(FASHION_MNIST, "t10k"))
    small = [one[:, :, ::2, ::2].contiguous() for one in (images[:IMAGES], tests[:TESTED])]
    return small[0], labels[:IMAGES], small[1].split(500), answers[:TESTED].split(500)


def _network(torch: Any) -> Any:
    nn, layers, before = torch.nn, [], 1
    for channels in (8, 16, 16):
        layers += [nn.Conv2d(before, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] * (len(layers) < 8)
        before = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))


@cache
def results() -> dict[str, Any]:
    """Return what was trained: ``network``, ``data``, ``training``, ``program``; ``runs`` by minibatch and seed."""
    path = resources.files("buddysim.papers.buddy") / FILE
    runs: dict[str, Any] = parse_json(path.read_text(encoding="utf-8"), FILE)
    return runs


def about() -> str:
    """Return what was trained, in a line."""
    made = results()
    seeds = len(made["runs"][str(MINIBATCHES[0])])
    return f"{made['network']} on {made['data']}; {made['training']}; {seeds} seeds"


def curve(batch: int) -> list[tuple[float, float, float]]:
    """Return the accuracy after each epoch, per cent: mean, minimum and maximum of the seeds."""
    runs = results()["runs"][str(batch)].values()
    return [(fmean(each), min(each), max(each)) for each in zip(*runs, strict=True)]


def difference_to_best(batch: int) -> tuple[float, float]:
    """Return final accuracy minus that of the best minibatch, paired by seed: mean and half 95 % interval, points."""
    from scipy import stats

    runs = results()["runs"]
    last = {each: {seed: run[-1] for seed, run in runs[str(each)].items()} for each in MINIBATCHES}
    best = max(MINIBATCHES, key=lambda each: fmean(last[each].values()))
    pairs = [accuracy - last[best][seed] for seed, accuracy in last[batch].items()]
    if batch == best:
        return 0.0, 0.0
    half = stats.t.ppf(0.975, len(pairs) - 1) * stdev(pairs) / sqrt(len(pairs))
    return fmean(pairs), float(half)


def lower() -> list[int]:
    """Return the minibatches whose final accuracy is significantly below the best."""
    return [batch for batch in MINIBATCHES if sum(difference_to_best(batch)) < 0]


def epochs_until_near(batch: int) -> int:
    """Epochs until the mean accuracy is within `NEAR_POINTS` of the last of the best minibatch; one more: never."""
    best = max(curve(each)[-1][0] for each in MINIBATCHES)
    means = [mean for mean, _, _ in curve(batch)]
    return next((n for n, mean in enumerate(means, 1) if mean >= best - NEAR_POINTS), len(means) + 1)


@simulates("buddy-batch-accuracy", "buddy-batch-convergence", "buddy-batch-largest", "buddy-batch-needed")
def accuracy(study: BuddyStudy, id: str) -> SimulatedValue:
    below = lower()
    if id == "buddy-batch-accuracy":
        points = ", ".join("{} {:+.2f} +- {:.2f}".format(batch, *difference_to_best(batch)) for batch in MINIBATCHES)
        first, last = ", ".join(map(str, below[:-1])), "".join(map(str, below[-1:]))
        text = f"{first} and {last} lower" if first else f"{last or 'none'} lower"
        interval = "difference to the best minibatch in points, 95 % interval"
        note = f"{interval}: {points}; {about()}; the larger, the fewer updates"
        return SimulatedValue(text, note)
    if id == "buddy-batch-convergence":
        epochs = {batch: epochs_until_near(batch) for batch in MINIBATCHES if batch >= 64}
        text = "slower" if epochs[64] > min(epochs.values()) else "no slower"
        each = ", ".join(f"{batch} {n if n <= EPOCHS else 'never'}" for batch, n in epochs.items())
        return SimulatedValue(text, f"epochs until {NEAR_POINTS:g} point below the best: {each}")
    good = [batch for batch in MINIBATCHES if batch not in below]
    if id == "buddy-batch-largest":
        return SimulatedValue(float(max(good)), f"of {MINIBATCHES[0]} to {MINIBATCHES[-1]}")
    fast = ", ".join(f"{name} {fast_enough(study, name)}" for name in NETWORKS)
    return SimulatedValue(
        None, f"accuracy from {min(good)} on; {NEAR_SPEED:.0%} of the speed at {BATCHES[-1]} from: {fast}"
    )


def fast_enough(study: BuddyStudy, name: str) -> int:
    """Return the smallest minibatch with `NEAR_SPEED` of the speed at the largest."""
    most = samples_per_s(study, name, BATCHES[-1])
    return next(batch for batch in BATCHES if samples_per_s(study, name, batch) >= NEAR_SPEED * most)
