"""An activations file that was read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from zlib_ng.zlib_ng import crc32

from buddysim.base.errors import BuddysimError
from buddysim.base.inputs import open_input
from buddysim.formats.activations.layout import VALUES_HEAD, ActivationsError, decompressed
from buddysim.formats.activations.records import FeatureMapInfo, TrainingPoint


@dataclass(frozen=True)
class StoredValues:
    """Where the values of a map lie in the file."""

    offset: int
    crc: int
    bytes: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass
class ActivationsFile:
    """An activations file; the values of its maps are read from the file when they are asked for.

    Attributes
    ----------
    path : of the file
    provenance : what made it, from which network, data and program
    maps : of the network, in the order in which a forward step writes them
    points : in the order of training
    state : ``"finished"``, or what ended the capture before
    """

    path: Path
    provenance: dict[str, str]
    maps: tuple[FeatureMapInfo, ...]
    points: tuple[TrainingPoint, ...]
    state: str
    _values: dict[tuple[int, int], StoredValues] = field(default_factory=dict, repr=False)

    @cached_property
    def densities(self) -> NDArray[np.float64]:
        """Density by point and map; NaN where a map wasn't seen."""
        found = np.full((len(self.points), len(self.maps)), np.nan)
        for row, point in enumerate(self.points):
            for statistics in point.maps:
                found[row, statistics.map] = statistics.density
        return found

    def mean_density(self, map: int) -> float | None:
        """A map's density on average over the training, linear between points; None where no point has the map."""
        seen = [(p.iteration, s.density) for p in self.points if (s := p.statistics(map)) is not None]
        if not seen:
            return None
        iterations, densities = zip(*seen, strict=True)
        span = iterations[-1] - iterations[0]
        return float(np.trapezoid(densities, iterations) / span if span else np.mean(densities))

    @property
    def stored_values(self) -> list[tuple[int, int]]:
        """Point and map, by their numbers, of all values that the file holds."""
        return sorted(self._values)

    def values(self, point: int, map: int) -> NDArray[Any]:
        """A map's values at a point, (samples, C, H, W) or (samples, features); fewer samples than the point may have.

        Values of type ``uint8`` are 1 where the element wasn't zero.
        """
        if (point, map) not in self._values:
            raise BuddysimError(f"{self.path}: has no values of map {map} at point {point}")
        found = self._values[point, map]
        where = f"values of map {map} at point {point}"
        try:
            with open_input(self.path, "activations file", incomplete=True) as file:
                file.seek(found.offset)
                payload = file.read(found.bytes)
        except OSError as error:
            raise BuddysimError(f"{self.path}: can't be read: {error.strerror}") from None
        if len(payload) != found.bytes or crc32(payload) != found.crc:
            raise ActivationsError(self.path, where, found.offset, "the file changed since it was opened")
        start = VALUES_HEAD.size + 4 * len(found.shape)
        expected = math.prod(found.shape) * found.dtype.itemsize
        planes = decompressed(self.path, where, found.offset, payload[start:], expected)
        bytes_ = np.frombuffer(planes, np.uint8).reshape(found.dtype.itemsize, -1)
        return np.ascontiguousarray(bytes_.T).view(found.dtype).reshape(found.shape)
