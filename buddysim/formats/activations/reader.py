"""Read activations files: every section is checked; an interrupted file ends with its last complete section."""

from __future__ import annotations

import math
import os
import struct
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.schema import checked_json
from buddysim.base.sections.section_file import SectionFile, SectionHead
from buddysim.base.sections.section_format import HEADER
from buddysim.formats.activations import layout, records
from buddysim.formats.activations.activations_file import ActivationsFile, StoredValues
from buddysim.formats.activations.records import FeatureMapInfo, TrainingPoint

T = TypeVar("T")


@within_budget
def load_activations(path: str | os.PathLike[str], *, incomplete: bool = False) -> ActivationsFile:
    """Load an activations file.

    Parameters
    ----------
    path : the file
    incomplete : accept the part of an interrupted capture (``OUT.incomplete``)

    Raises
    ------
    BuddysimError
        if the file cannot be read or is no activations file; the message has the section, its offset and the
        expectation
    """
    return _ActivationsReader(Path(path), incomplete).read()


class _ActivationsReader:
    """Reader of a file, section by section; earlier sections decide which one may follow."""

    def __init__(self, path: Path, incomplete: bool) -> None:
        self.file = SectionFile(path, layout.SECTIONS, incomplete=incomplete)
        self.provenance: dict[str, str] | None = None
        self.feature_maps: list[FeatureMapInfo] | None = None
        self.points: list[TrainingPoint] = []
        self.values: dict[tuple[int, int], StoredValues] = {}
        self.end: records.EndRecord | None = None

    def read(self) -> ActivationsFile:
        end = HEADER.size
        try:
            for section in self.file.sections():
                self._add(section, self.file.payload(section, section.name))
                end = section.end
        finally:
            self.file.close()
        if self.end is not None and end != self.file.bytes:
            self.file.fail("end of file", end, "data after the end")
        if self.provenance is None or self.feature_maps is None:
            self.file.fail(
                "end of file", end, "no provenance and feature maps: the file was interrupted before its first point"
            )
        state = self.end.state if self.end else "interrupted: the file has no end"
        return ActivationsFile(
            self.file.path, self.provenance, tuple(self.feature_maps), tuple(self.points), state, self.values
        )

    def _add(self, section: SectionHead, payload: bytes) -> None:
        """Add the next section."""
        kind, at, where = section.kind, section.offset, section.name
        if self.end is not None:
            self.file.fail(where, at, "comes after the end")
        expected = layout.PROVENANCE if self.provenance is None else layout.MAPS if self.feature_maps is None else None
        if (expected is not None and kind != expected) or (
            expected is None and kind in (layout.PROVENANCE, layout.MAPS)
        ):
            self.file.fail(where, at, "out of order: expected one PROV, one MAPS, then points and values")
        if kind == layout.PROVENANCE:
            self.provenance = self._json(records.PROVENANCE, where, at, payload)
        elif kind == layout.MAPS:
            self.feature_maps = self._json(records.MAPS, where, at, payload)
        elif kind == layout.POINT:
            self.points.append(self._point(payload, at))
        elif kind == layout.VALUES:
            point, map_, stored = self._stored_values(payload, section)
            if (point, map_) in self.values:
                self.file.fail(where, at, f"values of feature map {map_} at point {point} occur twice")
            self.values[point, map_] = stored
        elif kind == layout.END:
            self.end = self._json(records.END, where, at, payload)
            counted = len(self.points), len(self.values)
            if (self.end.points, self.end.values) != counted:
                stated = f"counts {self.end.points} points, {self.end.values} values"
                self.file.fail(where, at, f"{stated}, not {counted[0]}, {counted[1]}")
        else:
            self.file.fail(where, at, "unknown")

    def _json(self, type_: TypeAdapter[T], where: str, at: int, payload: bytes) -> T:
        text = self.file.decompress_up_to(payload, layout.LONGEST_TEXT, where, at)
        try:
            return checked_json(type_, text, "")
        except BuddysimError as error:
            self.file.fail(where, at, str(error).removeprefix(": "))

    def _point(self, payload: bytes, at: int) -> TrainingPoint:
        where = f"point {len(self.points)}"
        point = self._json(records.POINT, where, at, payload)
        if self.points and point.iteration < self.points[-1].iteration:
            self.file.fail(where, at, f"iteration {point.iteration} comes after {self.points[-1].iteration}")
        n_maps, seen = len(self.feature_maps or ()), set()
        for statistics in point.maps:
            index = statistics.map
            if index >= n_maps or index in seen:
                self.file.fail(where, at, f"feature map {index}: expected each of 0 to {n_maps - 1} at most once")
            seen.add(index)
            if statistics.nonzero > statistics.elements:
                self.file.fail(
                    where, at, f"feature map {index}: {statistics.nonzero} of {statistics.elements} not zero"
                )
            if statistics.sizes and not statistics.sized_elements:
                self.file.fail(where, at, f"feature map {index}: sizes of no elements")
        return point

    def _stored_values(self, payload: bytes, section: SectionHead) -> tuple[int, int, StoredValues]:
        """Return the indices of point and feature map, and the section of their values."""
        at, where, head, maps = section.offset, "values", layout.VALUES_HEAD, self.feature_maps or []
        if len(payload) < head.size:
            self.file.fail(where, at, f"{len(payload)} bytes: expected at least {head.size}")
        point, map_, elements, code, axes, zero = head.unpack_from(payload)
        valid = point < len(self.points) and map_ < len(maps) and code in layout.DTYPES and 2 <= axes <= 4 and not zero
        if not valid:
            self.file.fail(
                where, at, f"of feature map {map_} at point {point}, type {code}, {axes} axes: expected known ones"
            )
        if len(payload) < head.size + 4 * axes:
            self.file.fail(where, at, f"{len(payload)} bytes, too few for {axes} axes")
        shape = struct.unpack_from(f"<{axes}I", payload, head.size)
        expected = maps[map_].shape
        if shape[1:] != expected or not shape[0] or math.prod(shape) != elements:
            self.file.fail(where, at, f"shape {shape}, {elements} elements: expected (samples, {expected})")
        return point, map_, StoredValues(section, shape, layout.DTYPES[code])
