"""Observe feature maps during a training: a network learns Fashion-MNIST, with PyTorch on the CPU.

The network is a small one in the style of VGG, or one of the zoo with fewer channels (`ObservationSettings.reduction`).
At points of the training, dense at its start, `ObservationSettings.samples` test images pass through the network. The
density of each feature map is recorded. Some points also record the feature maps of the first image, and compressed
sizes by compressor, layout and window. Observation does not change the training: it has its own random generator.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.base.extras import INSTALL_TORCH
from buddysim.base.inputs import read_bytes
from buddysim.base.parsers.streams import gunzipped
from buddysim.compress.compressors import tensor_algorithms
from buddysim.compress.layouts import LAYOUTS
from buddysim.compress.tensors import density, described, tensor_ratios
from buddysim.formats.activations import (
    ActivationsWriter,
    FeatureMapInfo,
    FeatureMapStatistics,
    TrainingPoint,
    payload_sizes,
)
from buddysim.training.contents.maps import depths, roles
from buddysim.training.named_network import load_network
from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Layer, Network, Shape
from buddysim.training.networks.reduced import reduced

if TYPE_CHECKING:
    import torch

#: Folder of the images in Debian's package dataset-fashion-mnist.
FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")
WINDOWS = (4096, 8192, 16384, 32768, 65536)

#: Output channels of each CONV layer (3 x 3); "pool": a max pooling of 2 x 2; then neurons of each hidden FC layer.
FEATURES: tuple[int | str, ...] = (32, 32, "pool", 64, 64, "pool", 96, 96, "pool")
CLASSIFIER = (256, 128)


@dataclass(frozen=True)
class Reduction:
    """Network of the zoo with fewer channels, for smaller images.

    Attributes
    ----------
    network : name of the network
    width : channels and features relative to the original's
    size : edge of an image, in pixels
    """

    network: str
    width: float
    size: int


@dataclass(frozen=True)
class ObservationSettings:
    """Settings of the training and of its observation.

    Attributes
    ----------
    data : folder of Fashion-MNIST (the four files of gzipped IDX)
    reduction : the network; None: the small one in the style of VGG
    epochs, batch, learning_rate, momentum, weight_decay : parameters of stochastic gradient descent
    drops : fractions of the training after which the learning rate is divided by ten
    seed : seed of weights, order of images and dropout
    samples : images whose feature maps are observed; the cDMA paper uses 50 (Section IV-A)
    points : approximate number of iterations at which densities are recorded, half of them in the first tenth
    size_points : additional iterations with compressed sizes, equally spaced from the first to the last
    layouts : layouts of the feature maps that are compressed
    windows : windows of the compressors, in bytes
    algorithms : the compressors; None: all of tensors
    valued : images whose feature maps are stored uncompressed, at `value_points` of the points with sizes; 0: none
    images : number of training images; 0: all
    """

    data: Path = FASHION_MNIST
    reduction: Reduction | None = None
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
    layouts: tuple[str, ...] = LAYOUTS
    windows: tuple[int, ...] = WINDOWS
    algorithms: tuple[str, ...] | None = None
    valued: int = 1
    value_points: int = 7
    images: int = 0


def observe_training(
    path: str | os.PathLike[str],
    settings: ObservationSettings | None = None,
    progress: Callable[[int, int, float], None] | None = None,
    command: str = "python -m buddysim train --observe-activations",
) -> None:
    """Train the network and write the activations file.

    Parameters
    ----------
    path : the file to write
    settings : settings of the training; None: the defaults
    progress : called after each observed iteration with iterations done, iterations in total and the loss
    command : the user's command, for the provenance

    Raises
    ------
    BuddysimError
        if PyTorch is not installed, or the images cannot be read
    """
    settings = settings or ObservationSettings()
    torch = import_torch("--observe-activations")
    images, labels = read_fashion_mnist(settings.data, "train")
    test_images, test_labels = read_fashion_mnist(settings.data, "t10k")
    if settings.images:
        images, labels = images[: settings.images], labels[: settings.images]
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), torch.random.get_rng_state()
    try:
        torch.set_num_threads(1)  # a fixed order of summation
        torch.use_deterministic_algorithms(True)
        torch.manual_seed(settings.seed)
        _ObservedTraining(torch, settings, images, labels, test_images, test_labels).run(path, progress, command)
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1])
        torch.random.set_rng_state(before[2])


def import_torch(user: str) -> Any:
    """Return the module torch; otherwise raise an error with the command that installs it.

    Parameters
    ----------
    user : the option or command that needs PyTorch, for the error

    Raises
    ------
    BuddysimError
        if PyTorch is not installed
    """
    try:
        import torch
    except ImportError as error:
        raise BuddysimError(f"{user}: needs PyTorch ({error}): {INSTALL_TORCH}") from None
    return torch


def iterations_observed(total: int, settings: ObservationSettings) -> tuple[list[int], set[int], set[int]]:
    """Return the observed iterations, those of them with sizes, and those of them with values.

    Feature maps are observed before the iteration with that number.

    Parameters
    ----------
    total : iterations of the training
    """
    tenth = max(total // 10, 1)
    half = settings.points // 2
    early = {round(tenth ** (step / max(half - 1, 1))) for step in range(half)}
    late = {round(step * total / half) for step in range(1, half + 1)}
    sized = {round(step * total / (settings.size_points - 1)) for step in range(settings.size_points)}
    values = settings.value_points if settings.valued else 0
    valued = {round(step * total / (values - 1)) for step in range(values)}
    return sorted({0, total} | early | late | sized | valued), sized, valued


def read_fashion_mnist(folder: Path, part: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Read images and labels of Fashion-MNIST.

    Parameters
    ----------
    folder : folder of the four gzipped IDX files
    part : ``"train"`` or ``"t10k"``

    Returns
    -------
    images (n, 1, 28, 28), normalized to mean 0 and standard deviation 1 over the training set, and labels (n,)

    Raises
    ------
    BuddysimError
        if a file is missing, invalid, or the numbers of images and labels differ
    """
    pixels = _read_idx(folder / f"{part}-images-idx3-ubyte.gz", 3).reshape(-1, 1, 28, 28)
    labels = _read_idx(folder / f"{part}-labels-idx1-ubyte.gz", 1)
    if len(pixels) != len(labels):
        raise BuddysimError(f"{folder}: {len(pixels)} images and {len(labels)} labels of part {part}")
    mean, deviation = np.float32(0.2860), np.float32(0.3530)  # 60,000 training images, pixels scaled to 0 .. 1
    return (pixels.astype(np.float32) / np.float32(255) - mean) / deviation, labels.astype(np.int64)


LARGEST_IDX = 1 << 28
_IDX = "file of Fashion-MNIST"


def _read_idx(path: Path, axes: int) -> NDArray[np.uint8]:
    if not path.is_file():
        raise BuddysimError(f"{path}: not found: expected Fashion-MNIST (apt install dataset-fashion-mnist)")
    data = gunzipped(read_bytes(path, _IDX, LARGEST_IDX), os.fspath(path), LARGEST_IDX)
    head = 4 + 4 * axes
    if len(data) < head or data[:4] != bytes([0, 0, 8, axes]):
        raise BuddysimError(f"{path}: expected an IDX file of bytes with {axes} axes")
    shape = struct.unpack_from(f">{axes}I", data, 4)
    if len(data) != head + math.prod(shape) or (axes == 3 and shape[1:] != (28, 28)):
        raise BuddysimError(f"{path}: {len(data)} bytes, expected those of shape {shape}")
    return np.frombuffer(data, np.uint8, offset=head).reshape(shape)


class _ObservedTraining:
    def __init__(
        self,
        torch: Any,
        settings: ObservationSettings,
        images: NDArray[np.float32],
        labels: NDArray[np.int64],
        test_images: NDArray[np.float32],
        test_labels: NDArray[np.int64],
    ) -> None:
        self.torch, self.settings = torch, settings
        self.images, self.labels = torch.from_numpy(images), torch.from_numpy(labels)
        self.test_images, self.test_labels = torch.from_numpy(test_images), torch.from_numpy(test_labels)
        from buddysim.training.networks.to_torch import NetworkModule

        self.network = network_of(settings.reduction, tuple(test_images.shape[1:]), int(labels.max()) + 1)
        self.module = NetworkModule(self.network)
        self.layers, self.infos = observed_maps(self.network, all_layers=settings.reduction is None)
        self.optimizer = torch.optim.SGD(
            self.module.parameters(),
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
        drops = {round(compressed_fraction * self.total) for compressed_fraction in self.settings.drops}
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
                batch = permutation[step * self.settings.batch : (step + 1) * self.settings.batch]
                loss = self.train(self.images[batch], self.labels[batch])

    def train(self, images: torch.Tensor, labels: torch.Tensor) -> float:
        """Run one iteration and return its loss."""
        self.module.train()
        self.optimizer.zero_grad()
        loss = self.torch.nn.functional.cross_entropy(self.module(self.shaped(images)), labels)
        loss.backward()
        self.optimizer.step()
        return float(loss.item())

    def observe(self, writer: ActivationsWriter, iteration: int, loss: float, sized: bool, valued: bool) -> None:
        """Record the feature maps of the observed images, in training mode: dropout is on, with its own seed."""
        torch, settings = self.torch, self.settings
        values_by_layer: dict[int, NDArray[np.float32]] = {}

        def note(layer: Layer, values: Any) -> None:
            if layer.index in self.layers:
                values_by_layer[layer.index] = np.ascontiguousarray(values.numpy())

        buffers = {name: buffer.clone() for name, buffer in self.module.named_buffers()}
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.module.train()
            images = self.shaped(self.test_images[: settings.samples])
            note(self.network.layers[0], images)
            self.module(images, note)
            for name, buffer in self.module.named_buffers():  # batch normalisation updates its statistics
                buffer.copy_(buffers[name])
        maps = [values_by_layer[index] for index in self.layers]
        statistics = []
        for number, values in enumerate(maps):
            ratios = tensor_ratios(values, settings.layouts, settings.windows, settings.algorithms) if sized else ()
            nonzero = round(density(values) * values.size)
            sizes = payload_sizes(ratios)
            statistics.append(FeatureMapStatistics(number, values.size, nonzero, sizes, values.size if sized else 0))
        accuracy = self.accuracy() if sized else None
        rate = float(self.optimizer.param_groups[0]["lr"])
        epoch = iteration / self.per_epoch
        point = writer.add_point(
            TrainingPoint(iteration, epoch, settings.samples, tuple(statistics), loss, accuracy, rate)
        )
        if valued:
            for number, values in enumerate(maps):
                if self.infos[number].kind in ("relu", "maxpool") and self.infos[number].part == "features":
                    writer.add_values(point, number, values[: settings.valued])

    def accuracy(self) -> float:
        """Return the fraction of the first 2,000 test images that are classified correctly."""
        torch = self.torch
        self.module.eval()
        right = 0
        with torch.no_grad():
            for start in range(0, 2000, 250):
                predicted = self.module(self.shaped(self.test_images[start : start + 250])).argmax(1)
                right += int((predicted == self.test_labels[start : start + 250]).sum())
        self.module.train()
        return right / min(2000, len(self.test_images))

    def shaped(self, images: torch.Tensor) -> torch.Tensor:
        """Return images in the network's input shape: scaled to its size, the one channel repeated."""
        channels, *size = self.network.input_shape
        if tuple(images.shape[1:]) == self.network.input_shape:
            return images
        scaled = self.torch.nn.functional.interpolate(images, size=size, mode="bilinear")
        return scaled.expand(-1, channels, -1, -1).contiguous()

    def provenance(self, command: str) -> dict[str, str]:
        settings, torch = self.settings, self.torch
        parameters = f"{sum(p.numel() for p in self.module.parameters()):,} parameters"
        return {
            "tool": "buddysim.training.contents.observe_training",
            "version": buddysim.__version__,
            "command": command,
            "network": f"{described_network(settings.reduction)}; {parameters}",
            "data": f"Fashion-MNIST, {len(self.images):,} images for training, standardised (Zalando, MIT licence)",
            "training": f"SGD, batch {settings.batch}, {settings.epochs} epochs of {self.per_epoch} iterations, "
            f"learning rate {settings.learning_rate} divided by ten after {_text(round(x, 2) for x in settings.drops)} "
            f"of them, momentum {settings.momentum}, weight decay {settings.weight_decay}, seed {settings.seed}; "
            "weights initialised as He et al. do, biases 0",
            "observed": f"the first {settings.samples} test images, in training mode; accuracy on 2,000 test images",
            "compressors": f"buddysim.compress: {described(settings.algorithms or tensor_algorithms())}",
            "program": f"PyTorch {torch.__version__} on the CPU, one thread, deterministic algorithms: the same "
            "processor gives the same file bit by bit, another kind may round differently",
            "licence": "BSD-3-Clause, as the package; the data are under the MIT licence",
        }


def described_network(reduction: Reduction | None) -> str:
    """Return a description of the network that is trained."""
    if reduction is not None:
        size = f"images of {reduction.size} x {reduction.size}"
        return f"{reduction.network} reduced ({reduction.width:g} of its channels, {size})"
    conv = sum(isinstance(feature, int) for feature in FEATURES)
    return (
        f"{conv} CONV layers of 3 x 3 with ReLU ({_text(FEATURES)}), FC of {_text(CLASSIFIER)} with ReLU and dropout "
        "of one half, FC of 10"
    )


def network_of(reduction: Reduction | None, shape: Shape, classes: int) -> Network:
    """Return the network that is trained.

    Parameters
    ----------
    reduction : the reduced network; None: the small one in the style of VGG
    shape : shape of an image of the data set, the input shape of the small network
    classes : outputs of the network
    """
    if reduction is not None:
        return reduced(load_network(reduction.network), reduction.width, reduction.size, classes)
    net = NetworkBuilder("small", shape)
    conv = pool = 0
    for feature in FEATURES:
        if isinstance(feature, str):
            pool += 1
            net.add("maxpool", name=f"pool{pool}", kernel=2)
        else:
            conv += 1
            net.add("conv", name=f"conv{conv}", channels=feature, kernel=3, pad=1)
            net.add("relu", name=f"relu{conv}")
    for number, neurons in enumerate(CLASSIFIER, 1):
        net.add("fc", name=f"fc{number}", features=neurons)
        net.add("relu", name=f"fc{number}.relu")
        net.add("dropout", name=f"fc{number}.dropout")
    net.add("fc", name=f"fc{len(CLASSIFIER) + 1}", features=classes)
    return net.build()


def observed_maps(network: Network, all_layers: bool) -> tuple[list[int], list[FeatureMapInfo]]:
    """Return the layers whose feature maps are observed, and descriptions of these feature maps.

    The input is one of them.

    Parameters
    ----------
    all_layers : True: all layers; False: only those whose zeros depend on the training
    """
    indices = range(len(network.layers)) if all_layers else [0, *roles(network)]
    weighty = [layer.kind in ("conv", "fc") for layer in network.layers]
    depth = depths(network)
    infos = []
    for layer in (network.layers[index] for index in indices):
        follows = network.layers[layer.inputs[0]].kind if layer.inputs else ""
        infos.append(
            FeatureMapInfo(
                layer.name, layer.kind, layer.output_shape, follows, sum(weighty[: layer.index + 1]),
                depth[layer.index], "classifier" if layer.part == "classifier" else "features",
            )
        )  # fmt: skip
    return list(indices), infos


def _text(parts: Iterable[object]) -> str:
    return ", ".join(map(str, parts))
