"""Contents of feature maps from a file of activations, captured or observed in a training.

Densities are means over the training, interpolated linearly between the points of the file. With an epoch, they are
those of the nearest point. Only some points have compressed sizes. Their ratio to ZVC's sizes, which are exact given
the density, is averaged over these points, or taken from the nearest one. If the file lacks sizes of a layout, window
or compressor, they are computed from the feature maps that it holds. `buddysim.training.contents.depth_mapping` assigns
the observations to other networks.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.compress.tensors import TensorRatio, described, tensor_ratios
from buddysim.compress.tensors import density as density_of
from buddysim.compress.zvc import fraction_of_density as zvc_fraction
from buddysim.formats.activations import ActivationsFile, FeatureMapInfo, load_activations
from buddysim.training.contents.depth_mapping import DepthMappedContents, ObservedMap
from buddysim.training.contents.generated import relu_map
from buddysim.training.contents.interpolate import mean_over
from buddysim.training.contents.maps import Codec, MapContents
from buddysim.training.networks import kinds
from buddysim.training.networks.graph import Network

SHIPPED = resources.files("buddysim.training.contents") / "data" / "fashion-mnist.maps"


@cache
def shipped() -> ActivationsFile:
    """Load the bundled activations file, once: a figure's simulations all read it."""
    return load_activations(str(SHIPPED))


class ObservedActivations:
    """Contents of a network's feature maps from a file of activations.

    Parameters
    ----------
    activations : the file
    epoch : the point nearest to this epoch is used; None: the mean over all points
    repeated_values : False replaces every nonzero word of the file's feature maps by noise, so that no nonzero value
        occurs twice. This shows which part of a dictionary's compression is due to repeated values in the data set

    Raises
    ------
    BuddysimError
        if the file has no points, or the epoch is out of range
    """

    def __init__(self, activations: ActivationsFile, epoch: float | None = None, repeated_values: bool = True) -> None:
        self.activations = activations
        self.epoch = epoch
        self.repeated_values = repeated_values
        self.points = list(range(len(activations.points)))
        if not self.points:
            raise BuddysimError(f"{activations.path}: has no point of the training: expected at least one")
        if epoch is not None:
            if not 0 <= epoch < float("inf"):
                raise BuddysimError(f"epoch {epoch!r}: expected a number from 0")
            self.points = [self._nearest(self.points)]
        self.description = self._description()

    def made_by(self, codec: Codec) -> str:
        """Return the compressors that the file names; if it has no sizes of the codec, the installed version."""
        if any(self._stored_ratios(number, codec) for number in range(len(self.activations.feature_maps))):
            return self.activations.provenance.get("compressors", "compressors that the file does not name")
        return f"buddysim.compress: {described([codec.algorithm])}"

    def contents(self, network: Network, batch: int, codec: Codec) -> dict[int, MapContents]:
        """Return the contents of every layer's output, by layer index; the batch has no effect on fractions."""
        return DepthMappedContents(self.observed(codec), self.description).contents(network, batch, codec)

    def observed(self, codec: Codec) -> list[ObservedMap]:
        """Return the file's feature maps behind ReLU and pooling layers, in the order of the file."""
        seen = (self.observed_map(number, codec) for number, _ in sourced_maps(self.activations))
        return [one for one in seen if one is not None]

    def observed_map(self, number: int, codec: Codec) -> ObservedMap | None:
        """Return one observed feature map; None if no point has it.

        Parameters
        ----------
        number : index of the feature map in the file
        """
        info = self.activations.feature_maps[number]
        densities = []
        for point in self.points:
            statistics = self.activations.points[point].statistics(number)
            if statistics is not None:
                densities.append((self._iteration(point), statistics.density))
        kind = _kind(info)
        if kind is None or not densities:
            return None
        density = mean_over(densities)
        relation = None if codec.from_density else self._relation(number, codec)
        compressed_fractions = {} if relation is None else {codec: relation * zvc_fraction(density, codec.masks)}
        return ObservedMap(kind, info.depth, density, compressed_fractions)

    def _relation(self, number: int, codec: Codec) -> float | None:
        """Return the compressed size relative to ZVC's; None if the file has neither sizes nor values of it."""
        seen = self._stored_ratios(number, codec) or self._computed_ratios(number, codec)
        references = {point: zvc_fraction(density, codec.masks) for point, (density, _) in seen.items()}
        relations = {
            point: codec.compressed_fraction(seen[point][1]) / compressed_fraction
            for point, compressed_fraction in references.items()
            if compressed_fraction
        }
        if not relations:
            return None
        if self.epoch is not None:
            return relations[self._nearest(list(relations))]
        return mean_over((self._iteration(point), relation) for point, relation in relations.items())

    def _stored_ratios(self, number: int, codec: Codec) -> dict[int, tuple[float, TensorRatio]]:
        """Return density and compressed size of a feature map by point, for points with stored sizes."""
        ratios = {}
        for point, seen in enumerate(self.activations.points if self.repeated_values else ()):
            statistics = seen.statistics(number)
            for ratio in statistics.ratios() if statistics else ():
                if (ratio.algorithm, ratio.layout, ratio.window) == (codec.algorithm, codec.layout, codec.window):
                    assert statistics is not None
                    ratios[point] = (statistics.density, ratio)
        return ratios

    def _computed_ratios(self, number: int, codec: Codec) -> dict[int, tuple[float, TensorRatio]]:
        """Return density and compressed size of a feature map by point, computed from stored values."""
        ratios = {}
        for point, stored in self.activations.stored_values:
            values = self.activations.values(point, number) if stored == number else None
            if values is not None and values.dtype == np.float32 and values.ndim in (2, 4):
                values = values if self.repeated_values else _noise_for_values(values)
                (ratio,) = tensor_ratios(values, [codec.layout], [codec.window], [codec.algorithm])
                ratios[point] = (density_of(values), ratio)
        return ratios

    def _iteration(self, point: int) -> float:
        return float(self.activations.points[point].iteration)

    def _nearest(self, points: list[int]) -> int:
        """Return the point nearest to the epoch."""
        epoch = self.epoch
        assert epoch is not None
        return min(points, key=lambda point: abs(self.activations.points[point].epoch - epoch))

    def _description(self) -> str:
        made = self.activations.provenance
        # The provenance's texts begin with the name; the rest is too long for one line.
        subject = " on ".join(re.split(r"[(,;]", made[key])[0].strip() for key in ("network", "data") if key in made)
        points = [self.activations.points[i] for i in self.points]
        when = (
            f"mean of {len(points)} points, iterations {points[0].iteration} to {points[-1].iteration}"
            if self.epoch is None
            else f"iteration {points[0].iteration}, epoch {points[0].epoch:g}"
        )
        values = "" if self.repeated_values else ", values replaced by noise"
        state = "" if self.activations.state == "finished" else f"; {self.activations.state}"
        return f"observed: {self.activations.path.name}{f' ({subject})' if subject else ''}, {when}{values}{state}"


def observed_activations(
    path: str | None, epoch: float | None = None, repeated_values: bool = True
) -> ObservedActivations:
    """Load the contents of an activations file.

    Parameters
    ----------
    path : path of the file; None: the bundled file
    epoch, repeated_values : as in `ObservedActivations`
    """
    return ObservedActivations(shipped() if path is None else load_activations(path), epoch, repeated_values)


def sourced_maps(activations: ActivationsFile) -> list[tuple[int, str]]:
    """Return index and kind of the file's feature maps that a network's feature maps may correspond to."""
    kinds_found = ((number, _kind(info)) for number, info in enumerate(activations.feature_maps))
    return [(number, kind) for number, kind in kinds_found if kind is not None]


def _noise_for_values(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the values with every nonzero element replaced by noise."""
    alive = values.view(np.uint32) != 0
    noise = relu_map((1, 1, 1, values.size), 1.0, seed=1).reshape(values.shape)
    return np.where(alive, noise, np.float32(0))


def _kind(info: FeatureMapInfo) -> str | None:
    """Return the kind of the feature map's `FeatureMapRole`; None if it has none."""
    zeros = kinds.REGISTRY.find(info.kind).zeros if info.kind in kinds.REGISTRY else "none"
    if zeros == "makes":
        return "relu" if info.part == "features" else "fc-relu"
    return "pool" if zeros == "pools" and info.part == "features" else None
