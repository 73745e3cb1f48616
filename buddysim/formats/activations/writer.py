"""Write activations files."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from buddysim.base.output import Output
from buddysim.base.sections.section_writer import SectionWriter
from buddysim.formats.activations import layout, records
from buddysim.formats.activations.records import FeatureMapInfo, TrainingPoint


class ActivationsWriter(SectionWriter):
    """Writer of an activations file; a context manager.

    The file appears under its name when it is complete. With `keep_part`, an interrupted capture leaves every complete
    section in ``PATH.incomplete``.

    Parameters
    ----------
    path : the file to write
    provenance : texts by subject: ``tool``, ``version``, ``source``, ``licence``, ``command``, ``network``, ...
    feature_maps : the network's feature maps
    inputs : input files, which must differ from the output
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        provenance: dict[str, str],
        feature_maps: Sequence[FeatureMapInfo],
        *,
        inputs: Iterable[str | os.PathLike[str]] = (),
        keep_part: bool = False,
        compression_level: int = 9,
    ) -> None:
        super().__init__(layout.SECTIONS, Output(path, inputs, keep_part=keep_part), owned=True, flush_each=keep_part)
        self.feature_maps = tuple(feature_maps)
        self._state = "finished"
        self._compressor = zstandard.ZstdCompressor(level=compression_level, write_content_size=True)
        self._points = self._values = 0
        self._text(layout.PROVENANCE, records.PROVENANCE.dump_json(provenance))
        self._text(layout.MAPS, records.MAPS.dump_json(list(self.feature_maps)))

    def add_point(self, point: TrainingPoint) -> int:
        """Add a point of the training and return its index.

        Raises
        ------
        ValueError
            if a feature map is unknown, or occurs twice
        """
        seen = set()
        for statistics in point.maps:
            if not statistics.map < len(self.feature_maps) or statistics.map in seen:
                raise ValueError(f"point {self._points}: feature map {statistics.map} is unknown, or occurs twice")
            seen.add(statistics.map)
        self._text(layout.POINT, records.POINT.dump_json(_finite(point)))
        self._points += 1
        return self._points - 1

    def add_values(self, point: int, map_index: int, values: NDArray[Any]) -> None:
        """Add values of a feature map at a point.

        Parameters
        ----------
        point, map_index : indices of point and feature map
        values : array (samples, *shape) of float32, float16, or bool (True: nonzero)

        Raises
        ------
        ValueError
            if the point, the feature map, the shape or the type is invalid
        """
        if not (0 <= point < self._points and 0 <= map_index < len(self.feature_maps)):
            raise ValueError(
                f"values of feature map {map_index} at point {point}: there is no such feature map or point"
            )
        if values.ndim < 2 or values.shape[1:] != self.feature_maps[map_index].shape or not len(values):
            raise ValueError(
                f"values of shape {values.shape}: expected (samples, {self.feature_maps[map_index].shape})"
            )
        if values.dtype == np.bool_:
            values = values.view(np.uint8)
        code = next((code for code, dtype in layout.DTYPES.items() if dtype == values.dtype), None)
        if code is None:
            raise ValueError(f"values of type {values.dtype}: expected float32, float16 or bool")
        planes = np.ascontiguousarray(values).reshape(-1, 1).view(np.uint8).T
        head = layout.VALUES_HEAD.pack(point, map_index, math.prod(values.shape), code, values.ndim, 0)
        shape = struct.pack(f"<{values.ndim}I", *values.shape)
        self._section(layout.VALUES, head + shape + self._compressor.compress(planes.tobytes()))
        self._values += 1

    def close(self, state: str = "finished", *, put: bool = True) -> None:
        """End the file.

        Parameters
        ----------
        state : the reason why the capture ended
        put : whether the file gets its name

        Raises
        ------
        BuddysimError
            if the file cannot be written
        """
        self._state = state
        super().close(put=put)

    def _end(self) -> None:
        self._text(layout.END, records.END.dump_json(records.EndRecord(self._points, self._values, self._state)))

    def _text(self, kind: bytes, text: bytes) -> None:
        self._section(kind, self._compressor.compress(text))


def _finite(point: TrainingPoint) -> TrainingPoint:
    """Return the point with None in place of a loss or a rate that is not finite."""
    numbers = {
        name: value if value is None or math.isfinite(value) else None
        for name, value in (("loss", point.loss), ("learning_rate", point.learning_rate))
    }
    return TrainingPoint(**{**{name: getattr(point, name) for name in point.__dataclass_fields__}, **numbers})
