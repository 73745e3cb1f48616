"""Fashion-MNIST (Debian's package dataset-fashion-mnist) as images of three channels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.base.parsers.streams import gunzipped
from buddysim.workloads.training.problem import TrainingProblem

if TYPE_CHECKING:
    import torch

CLASSES: Final = 10
_FOLDER: Final = Path("/usr/share/datasets/fashion-mnist")
_IMAGES, _LABELS = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"
_HEADS: Final = {_IMAGES: 16, _LABELS: 8}  # bytes before the data
_EDGE: Final = 28
_LARGEST: Final = 1 << 28
MEAN, DEVIATION = 0.2860, 0.3530  # of its pixels


@cache
def _read(name: str) -> NDArray[np.uint8]:
    try:
        packed = (_FOLDER / name).read_bytes()
    except OSError as error:
        raise BuddysimError(
            f"{_FOLDER / name}: {error.strerror}: expected Fashion-MNIST (Debian: apt install dataset-fashion-mnist)"
        ) from None
    data = gunzipped(packed, str(_FOLDER / name), _LARGEST)
    return np.frombuffer(data, np.uint8, offset=_HEADS[name])


def batches(problem: TrainingProblem) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield batches from half of the training images, in an order by the seed, scaled to the problem's size.

    Yields
    ------
    float32 (batch, 3, size, size), normalised; int64 (batch,)
    """
    import torch

    images, labels = _read(_IMAGES).reshape(-1, _EDGE, _EDGE), _read(_LABELS)
    half = len(labels) // 2
    random = np.random.default_rng([problem.seed, problem.part])
    while True:
        order = problem.part * half + random.permutation(half)
        for first in range(0, half - problem.batch + 1, problem.batch):
            indexes = order[first : first + problem.batch]
            grey = torch.from_numpy((images[indexes].astype(np.float32) / 255 - MEAN) / DEVIATION)[:, None]
            scaled = torch.nn.functional.interpolate(grey, size=(problem.size, problem.size), mode="bilinear")
            yield scaled.expand(-1, 3, -1, -1).contiguous(), torch.from_numpy(labels[indexes].astype(np.int64))
