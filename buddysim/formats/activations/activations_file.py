"""Contents of an activations file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.base.sections.section_file import SectionFile, SectionHead
from buddysim.formats.activations.layout import SECTIONS, VALUES_HEAD
from buddysim.formats.activations.records import FeatureMapInfo, TrainingPoint


@dataclass(frozen=True)
class StoredValues:
    """Where a feature map's values are in the file, and what they are."""

    section: SectionHead
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass
class ActivationsFile:
    """An activations file; values of feature maps are read from the file on request.

    Attributes
    ----------
    path : path of the file
    provenance : tool, network, data and program
    feature_maps : the network's feature maps, in the order in which a forward pass writes them
    points : points of the training, in order
    state : ``"finished"``, or the reason why the capture ended early
    """

    path: Path
    provenance: dict[str, str]
    feature_maps: tuple[FeatureMapInfo, ...]
    points: tuple[TrainingPoint, ...]
    state: str
    _values: dict[tuple[int, int], StoredValues] = field(default_factory=dict, repr=False)

    @cached_property
    def densities(self) -> NDArray[np.float64]:
        """Return the density by point and feature map; NaN if a feature map was not observed."""
        densities = np.full((len(self.points), len(self.feature_maps)), np.nan)
        for row, point in enumerate(self.points):
            for statistics in point.maps:
                densities[row, statistics.map] = statistics.density
        return densities

    def mean_density(self, map_index: int) -> float | None:
        """Return a feature map's mean density over the training, linear between points; None if no point has it."""
        seen = [(p.iteration, s.density) for p in self.points if (s := p.statistics(map_index)) is not None]
        if not seen:
            return None
        iterations, densities = zip(*seen, strict=True)
        span = iterations[-1] - iterations[0]
        return float(np.trapezoid(densities, iterations) / span if span else np.mean(densities))

    @property
    def stored_values(self) -> list[tuple[int, int]]:
        """Return the indices of point and feature map of all values in the file."""
        return sorted(self._values)

    def values(self, point: int, map_index: int) -> NDArray[Any]:
        """Read the values of a feature map at a point, for some of the samples.

        Returns
        -------
        array (samples, C, H, W) or (samples, features); of type ``uint8``, 1 stands for a nonzero element

        Raises
        ------
        BuddysimError
            if the file has no such values, cannot be read, or changed since it was opened
        """
        if (point, map_index) not in self._values:
            raise BuddysimError(f"{self.path}: has no values of feature map {map_index} at point {point}")
        stored = self._values[point, map_index]
        where = f"values of feature map {map_index} at point {point}"
        file = SectionFile(self.path, SECTIONS, incomplete=True)
        start = VALUES_HEAD.size + 4 * len(stored.shape)
        expected = math.prod(stored.shape) * stored.dtype.itemsize
        try:
            payload = file.payload(stored.section, where)
            planes = file.decompress(memoryview(payload)[start:], expected, where, stored.section.offset)
        finally:
            file.close()
        bytes_ = np.frombuffer(planes, np.uint8).reshape(stored.dtype.itemsize, -1)
        return np.ascontiguousarray(bytes_.T).view(stored.dtype).reshape(stored.shape)
