"""Trains a small network on a quarter of Fashion-MNIST's pixels, and tests it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from numpy.typing import NDArray

from buddysim.training.contents.observe_training import FASHION_MNIST, read_fashion_mnist

BATCH = 32
TESTED = 2000


@cache
def test_data() -> tuple[NDArray[Any], ...]:
    """Return images and labels of training and test: every other row and column."""
    images, labels = read_fashion_mnist(FASHION_MNIST, "train")
    tests, answers = read_fashion_mnist(FASHION_MNIST, "t10k")
    return images[:, :, ::2, ::2].copy(), labels, tests[:TESTED, :, ::2, ::2].copy(), answers[:TESTED]


def train_batches(
    torch: Any, module: Any, optimizer: Any, iterations: int, around: Callable[[], AbstractContextManager[Any]]
) -> None:
    """Train on so many batches, in an order that the seed decides; `around` is entered for each."""
    images, labels = map(torch.from_numpy, test_data()[:2])
    order = torch.randperm(len(images))[: iterations * BATCH].reshape(iterations, BATCH)
    for batch in order:
        optimizer.zero_grad()
        with around():
            loss = torch.nn.functional.cross_entropy(module(images[batch]), labels[batch])
            loss.backward()
        optimizer.step()


def accuracy_of(torch: Any, module: Any) -> float:
    """Return the part of the tested images that is classified rightly, in per cent."""
    tests, answers = map(torch.from_numpy, test_data()[2:])
    with torch.no_grad():
        right = (module(tests).argmax(1) == answers).double().mean()
    return 100 * float(right)
