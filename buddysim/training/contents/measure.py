"""Measures feature maps over a training: a network in the style of VGG learns Fashion-MNIST, with PyTorch on the CPU.

At points of the training, dense at its start, the same images (`MeasureSettings.samples` of the test set) go through
the network as it then is, and each map's density is recorded; at some of them also the sizes of its codes by every
compressor in every layout and window, and the maps of the first image. None of this changes the training: observation
has a random generator of its own.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.base.extras import INSTALL_TORCH
from buddysim.compress.registry import tensor_algorithms
from buddysim.compress.tensors import LAYOUTS, density, described, tensor_ratios
from buddysim.formats.maps import ActivationsWriter, MapInfo, MapStatistics, Point, code_sizes

if TYPE_CHECKING:
    import torch

#: Where Debian's dataset-fashion-mnist puts the images.
FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")
WINDOWS = (4096, 8192, 16384, 32768, 65536)

#: Output channels of each CONV layer (3 x 3), "pool" for a max pooling of 2 x 2; then neurons of each hidden FC layer.
FEATURES: tuple[int | str, ...] = (32, 32, "pool", 64, 64, "pool", 96, 96, "pool")
CLASSIFIER = (256, 128)


@dataclass(frozen=True)
class MeasureSettings:
    """How the network is trained and observed.

    Attributes
    ----------
    data : folder of Fashion-MNIST (the four files of gzipped IDX)
    epochs, batch, learning_rate, momentum, weight_decay : of stochastic gradient descent
    drops : shares of the training after which the learning rate is divided by ten
    seed : of weights, order of images and dropout
    samples : images that the maps are of; the cDMA paper takes 50 (Sec. IV-A)
    points : densities are recorded at about so many iterations, half of them in the first tenth
    size_points : so many of them, equally spaced from the first to the last iteration, have compressed sizes
    windows : of the compressors, in bytes
    valued : images whose maps are stored as they are, at `value_points` of the points with sizes
    images : of the training set, 0 for all
    """

    data: Path = FASHION_MNIST
    epochs: int = 2
    batch: int = 64
    learning_rate: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 5e-4
    drops: tuple[float, ...] = (2 / 3,)
    seed: int = 1
    samples: int = 50
    points: int = 60
    size_points: int = 7
    windows: tuple[int, ...] = WINDOWS
    valued: int = 1
    value_points: int = 7
    images: int = 0


def measure(
    path: str | os.PathLike[str],
    settings: MeasureSettings | None = None,
    progress: Callable[[int, int, float], None] | None = None,
    command: str = "python -m buddysim train --measure",
) -> None:
    """Trains the network and writes the activations file.

    Parameters
    ----------
    path : the file to write
    settings : of the training
    progress : called with iterations done, iterations in all and the loss, after each observed iteration
    command : of the user, for the provenance
    """
    settings = settings or MeasureSettings()
    torch = import_torch("--measure")
    images, labels = read_fashion_mnist(settings.data, "train")
    test_images, test_labels = read_fashion_mnist(settings.data, "t10k")
    if settings.images:
        images, labels = images[: settings.images], labels[: settings.images]
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), torch.random.get_rng_state()
    try:
        torch.set_num_threads(1)  # sums in one order
        torch.use_deterministic_algorithms(True)
        torch.manual_seed(settings.seed)
        _Training(torch, settings, images, labels, test_images, test_labels).run(path, progress, command)
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1])
        torch.random.set_rng_state(before[2])


def import_torch(user: str) -> Any:
    """PyTorch, or the command that installs it."""
    try:
        import torch
    except ImportError as error:
        raise BuddysimError(f"{user}: needs PyTorch ({error}): {INSTALL_TORCH}") from None
    return torch


def iterations_observed(total: int, settings: MeasureSettings) -> tuple[list[int], set[int], set[int]]:
    """Numbers of the iterations before which the maps are observed; those with sizes; those with values."""
    tenth = max(total // 10, 1)
    half = settings.points // 2
    early = {round(tenth ** (step / max(half - 1, 1))) for step in range(half)}
    late = {round(step * total / half) for step in range(1, half + 1)}
    sized = {round(step * total / (settings.size_points - 1)) for step in range(settings.size_points)}
    valued = {round(step * total / (settings.value_points - 1)) for step in range(settings.value_points)}
    return sorted({0, total} | early | late | sized | valued), sized, valued


def read_fashion_mnist(folder: Path, part: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Images (n, 1, 28, 28), of mean 0 and deviation 1 over the training set, and their labels."""
    pixels = _read_idx(folder / f"{part}-images-idx3-ubyte.gz", 3).reshape(-1, 1, 28, 28)
    labels = _read_idx(folder / f"{part}-labels-idx1-ubyte.gz", 1)
    if len(pixels) != len(labels):
        raise BuddysimError(f"{folder}: {len(pixels)} images and {len(labels)} labels of part {part}")
    mean, deviation = np.float32(0.2860), np.float32(0.3530)  # of the 60,000 training images' pixels
    return (pixels.astype(np.float32) / np.float32(255) - mean) / deviation, labels.astype(np.int64)


def _read_idx(path: Path, axes: int) -> NDArray[np.uint8]:
    try:
        with gzip.open(path) as file:
            data = file.read()
    except FileNotFoundError:
        raise BuddysimError(f"{path}: not found: expected Fashion-MNIST (apt install dataset-fashion-mnist)") from None
    except (OSError, EOFError, zlib.error) as error:
        raise BuddysimError(f"{path}: can't be read: {error}") from None
    head = 4 + 4 * axes
    if len(data) < head or data[:4] != bytes([0, 0, 8, axes]):
        raise BuddysimError(f"{path}: expected an IDX file of bytes with {axes} axes")
    shape = struct.unpack_from(f">{axes}I", data, 4)
    if len(data) != head + math.prod(shape) or (axes == 3 and shape[1:] != (28, 28)):
        raise BuddysimError(f"{path}: {len(data)} bytes, expected those of shape {shape}")
    return np.frombuffer(data, np.uint8, offset=head).reshape(shape)


class _Training:
    def __init__(
        self,
        torch: Any,
        settings: MeasureSettings,
        images: NDArray[np.float32],
        labels: NDArray[np.int64],
        test_images: NDArray[np.float32],
        test_labels: NDArray[np.int64],
    ) -> None:
        self.torch, self.settings = torch, settings
        self.images, self.labels = torch.from_numpy(images), torch.from_numpy(labels)
        self.test_images, self.test_labels = torch.from_numpy(test_images), torch.from_numpy(test_labels)
        self.layers, self.infos = build(torch, tuple(test_images.shape[1:]), int(labels.max()) + 1)
        self.network = torch.nn.Sequential(*self.layers)
        self.optimizer = torch.optim.SGD(
            self.network.parameters(),
            settings.learning_rate,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
        )
        self.per_epoch = len(images) // settings.batch
        self.total = self.per_epoch * settings.epochs

    def run(
        self, path: str | os.PathLike[str], progress: Callable[[int, int, float], None] | None, command: str
    ) -> None:
        observed, sized, valued = iterations_observed(self.total, self.settings)
        drops = {round(share * self.total) for share in self.settings.drops}
        order = self.torch.Generator().manual_seed(self.settings.seed)
        loss = float("nan")
        permutation = None
        with ActivationsWriter(path, self.provenance(command), self.infos, compression_level=19) as writer:
            for iteration in range(self.total + 1):
                if iteration in observed:
                    self.observe(writer, iteration, loss, iteration in sized, iteration in valued)
                    if progress:
                        progress(iteration, self.total, loss)
                if iteration == self.total:
                    break
                if iteration in drops:
                    for group in self.optimizer.param_groups:
                        group["lr"] /= 10
                step = iteration % self.per_epoch
                if step == 0:
                    permutation = self.torch.randperm(len(self.images), generator=order)
                assert permutation is not None
                chosen = permutation[step * self.settings.batch : (step + 1) * self.settings.batch]
                loss = self.train(self.images[chosen], self.labels[chosen])

    def train(self, images: torch.Tensor, labels: torch.Tensor) -> float:
        """One iteration; gives its loss."""
        self.network.train()
        self.optimizer.zero_grad()
        loss = self.torch.nn.functional.cross_entropy(self.network(images), labels)
        loss.backward()
        self.optimizer.step()
        return float(loss.item())

    def observe(self, writer: ActivationsWriter, iteration: int, loss: float, sized: bool, valued: bool) -> None:
        """Records every map of the chosen images, as it is in training (dropout on, from a seed of its own)."""
        torch, settings = self.torch, self.settings
        maps: list[NDArray[np.float32]] = []
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.network.train()
            tensor = self.test_images[: settings.samples]
            maps.append(tensor.numpy())
            for layer in self.layers:
                tensor = layer(tensor)
                if not isinstance(layer, torch.nn.Flatten):
                    maps.append(np.ascontiguousarray(tensor.numpy()))
        statistics = []
        for number, values in enumerate(maps):
            ratios = tensor_ratios(values, LAYOUTS, settings.windows) if sized else ()
            nonzero = round(density(values) * values.size)
            sizes = code_sizes(ratios)
            statistics.append(MapStatistics(number, values.size, nonzero, sizes, values.size if sized else 0))
        accuracy = self.accuracy() if sized else None
        rate = float(self.optimizer.param_groups[0]["lr"])
        epoch = iteration / self.per_epoch
        point = writer.add_point(Point(iteration, epoch, settings.samples, tuple(statistics), loss, accuracy, rate))
        if valued:
            for number, values in enumerate(maps):
                if self.infos[number].kind in ("relu", "maxpool") and self.infos[number].part == "features":
                    writer.add_values(point, number, values[: settings.valued])

    def accuracy(self) -> float:
        """Share of the first 2,000 test images that are classified right."""
        torch = self.torch
        self.network.eval()
        right = 0
        with torch.no_grad():
            for start in range(0, 2000, 250):
                found = self.network(self.test_images[start : start + 250]).argmax(1)
                right += int((found == self.test_labels[start : start + 250]).sum())
        self.network.train()
        return right / min(2000, len(self.test_images))

    def provenance(self, command: str) -> dict[str, str]:
        settings, torch = self.settings, self.torch
        conv = sum(info.kind == "conv" for info in self.infos)
        return {
            "tool": "buddysim.training.contents.measure",
            "version": buddysim.__version__,
            "command": command,
            "network": f"{conv} CONV layers of 3 x 3 with ReLU ({_text(FEATURES)}), FC of {_text(CLASSIFIER)} with "
            f"ReLU and dropout of one half, FC of 10; {sum(p.numel() for p in self.network.parameters()):,} parameters",
            "data": f"Fashion-MNIST, {len(self.images):,} images for training, standardised (Zalando, MIT licence)",
            "training": f"SGD, batch {settings.batch}, {settings.epochs} epochs of {self.per_epoch} iterations, "
            f"learning rate {settings.learning_rate} divided by ten after {_text(round(x, 2) for x in settings.drops)} "
            f"of them, momentum {settings.momentum}, weight decay {settings.weight_decay}, seed {settings.seed}; "
            "weights drawn as He et al. do, biases 0",
            "observed": f"the first {settings.samples} test images, in training mode; accuracy on 2,000 test images",
            "compressors": f"buddysim.compress: {described(tensor_algorithms())}",
            "program": f"PyTorch {torch.__version__} on the CPU, one thread, deterministic algorithms: the same "
            "processor gives the same file bit by bit, another kind may round differently",
            "licence": "BSD-3-Clause, as the package; the data are under the MIT licence",
        }


def build(torch: Any, shape: tuple[int, ...], classes: int) -> tuple[list[Any], list[MapInfo]]:
    """The network's layers, and the description of each one's map (of all but the flattening)."""
    nn = torch.nn
    channels, height, width = shape
    n_conv, n_fc = sum(isinstance(f, int) for f in FEATURES), len(CLASSIFIER) + 1
    layers: list[Any] = []
    infos = [MapInfo("input", "input", (channels, height, width))]
    conv = pool = 0
    for feature in FEATURES:
        depth = max(conv - 1, 0) / (n_conv - 1)
        if isinstance(feature, str):
            pool += 1
            height, width = height // 2, width // 2
            layers.append(nn.MaxPool2d(2))
            infos.append(MapInfo(f"pool{pool}", "maxpool", (channels, height, width), "relu", conv, depth))
            continue
        conv += 1
        depth = (conv - 1) / (n_conv - 1)
        layers += [nn.Conv2d(channels, feature, 3, padding=1), nn.ReLU()]
        channels = feature
        shape = (channels, height, width)
        infos.append(MapInfo(f"conv{conv}", "conv", shape, infos[-1].kind, conv, depth))
        infos.append(MapInfo(f"relu{conv}", "relu", shape, "conv", conv, depth))
    layers.append(nn.Flatten())
    features = channels * height * width
    for number, neurons in enumerate((*CLASSIFIER, classes), 1):
        depth = (number - 1) / (n_fc - 1)
        layers.append(nn.Linear(features, neurons))
        infos.append(MapInfo(f"fc{number}", "fc", (neurons,), infos[-1].kind, conv + number, depth, "classifier"))
        if number < n_fc:
            layers += [nn.ReLU(), nn.Dropout(0.5)]
            infos.append(MapInfo(f"fc{number}.relu", "relu", (neurons,), "fc", conv + number, depth, "classifier"))
            infos.append(
                MapInfo(f"fc{number}.dropout", "dropout", (neurons,), "relu", conv + number, depth, "classifier")
            )
        features = neurons
    for layer in layers:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
    return layers, infos


def _text(parts: Iterable[object]) -> str:
    return ", ".join(map(str, parts))
