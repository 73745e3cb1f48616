"""Bundled observations of the CSWAP paper's networks in reduced trainings.

``python tools/measure_activations.py --reduced`` makes them. Each network has the layers of the paper's network, under
the same names, with fewer channels and smaller images. A network's variants for ImageNet and for CIFAR-10 use the same
training.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from buddysim.formats.activations import ActivationsFile, load_activations
from buddysim.training.contents.observe_training import ObservationSettings, Reduction
from buddysim.training.contents.one_to_one import mismatch
from buddysim.training.networks.graph import Network

FOLDER = resources.files("buddysim.training.contents") / "data"

EPOCHS = 8
IMAGES = 2000
BATCH = 32


class ReducedTraining(NamedTuple):
    """A reduced network, its learning rate, and the networks with the same feature maps."""

    reduction: Reduction
    learning_rate: float
    serves: tuple[str, ...]


TRAININGS = (
    ReducedTraining(Reduction("alexnet", 0.5, 64), 0.01, ("alexnet", "alexnet-cifar10")),
    ReducedTraining(Reduction("vgg16", 0.25, 32), 0.01, ("vgg16", "vgg16-cifar10")),
    ReducedTraining(Reduction("mobilenet", 0.5, 64), 0.05, ("mobilenet", "mobilenet-cifar10")),
    ReducedTraining(Reduction("plain20", 0.5, 32), 0.05, ("plain20", "plain20-imagenet")),
    ReducedTraining(Reduction("resnet20", 0.5, 32), 0.05, ("resnet20",)),
    ReducedTraining(Reduction("resnet50", 0.25, 64), 0.05, ("resnet50",)),
    ReducedTraining(Reduction("squeezenet", 0.5, 64), 0.01, ("squeezenet", "squeezenet-cifar10")),
)


def settings_of(training: ReducedTraining) -> ObservationSettings:
    """Return the settings of a reduced training.

    A point is recorded at the start and after each epoch, with the compressed sizes that the GPU codecs need.
    """
    return ObservationSettings(
        reduction=training.reduction, epochs=EPOCHS, batch=BATCH, learning_rate=training.learning_rate, images=IMAGES,
        points=0, size_points=EPOCHS + 1, layouts=("NCHW",), windows=(4096, 65536), algorithms=("csr", "rle", "lz4"),
        valued=0,
    )  # fmt: skip


def path_of(training: ReducedTraining) -> Path:
    """Return the path of a reduced training's activations file."""
    return Path(str(FOLDER)) / f"{training.reduction.network}-reduced.maps"


@cache
def _load(training: ReducedTraining) -> ActivationsFile:
    return load_activations(path_of(training))


def training_of(network: Network) -> ActivationsFile | None:
    """Return the reduced training that has all feature maps of a network, by name; None if there is none."""
    for training in TRAININGS:
        if network.name in training.serves and mismatch(network, _load(training), by_name=True) is None:
            return _load(training)
    return None
