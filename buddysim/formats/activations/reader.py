"""Read activations files: every section is checked; an interrupted file ends with its last complete section."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn, TypeVar

from pydantic import TypeAdapter, ValidationError
from zlib_ng.zlib_ng import crc32

from buddysim.base.inputs import read_bytes
from buddysim.base.schema import problem_in_json
from buddysim.formats.activations import layout, records
from buddysim.formats.activations.activations_file import ActivationsFile, StoredValues
from buddysim.formats.activations.layout import ActivationsError, decompressed
from buddysim.formats.activations.records import FeatureMapInfo, TrainingPoint

T = TypeVar("T")

LARGEST_FILE = 2**33


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
        self.path = path
        self.data = read_bytes(path, "activations file", LARGEST_FILE, incomplete=incomplete)
        self.provenance: dict[str, str] | None = None
        self.feature_maps: list[FeatureMapInfo] | None = None
        self.points: list[TrainingPoint] = []
        self.values: dict[tuple[int, int], StoredValues] = {}
        self.end: records.EndRecord | None = None

    def read(self) -> ActivationsFile:
        self._check_header()
        at, payload = layout.HEADER.size, b""
        for kind, at, payload in self._sections():
            self._add(kind, at, payload)
        if self.end is not None and at + layout.SECTION.size + len(payload) != len(self.data):
            self._fail("end of file", at, "data after the end")
        if self.provenance is None or self.feature_maps is None:
            self._fail(
                "end of file", at, "no provenance and feature maps: the file was interrupted before its first point"
            )
        state = self.end.state if self.end else "interrupted: the file has no end"
        return ActivationsFile(
            self.path, self.provenance, tuple(self.feature_maps), tuple(self.points), state, self.values
        )

    def _add(self, kind: bytes, at: int, payload: bytes) -> None:
        """Add the next section."""
        where = f"section {kind.decode('ascii', 'replace')!r}"
        if self.end is not None:
            self._fail(where, at, "comes after the end")
        expected = layout.PROVENANCE if self.provenance is None else layout.MAPS if self.feature_maps is None else None
        if (expected is not None and kind != expected) or (
            expected is None and kind in (layout.PROVENANCE, layout.MAPS)
        ):
            self._fail(where, at, "out of order: expected one PROV, one MAPS, then points and values")
        if kind == layout.PROVENANCE:
            self.provenance = self._json(records.PROVENANCE, where, at, payload)
        elif kind == layout.MAPS:
            self.feature_maps = self._json(records.MAPS, where, at, payload)
        elif kind == layout.POINT:
            self.points.append(self._point(payload, at))
        elif kind == layout.VALUES:
            point, map_, stored = self._stored_values(payload, at)
            if (point, map_) in self.values:
                self._fail(where, at, f"values of feature map {map_} at point {point} occur twice")
            self.values[point, map_] = stored
        elif kind == layout.END:
            self.end = self._json(records.END, where, at, payload)
            counted = len(self.points), len(self.values)
            if (self.end.points, self.end.values) != counted:
                stated = f"counts {self.end.points} points, {self.end.values} values"
                self._fail(where, at, f"{stated}, not {counted[0]}, {counted[1]}")
        else:
            self._fail(where, at, "unknown")

    def _fail(self, section: str, offset: int, problem: str) -> NoReturn:
        raise ActivationsError(self.path, section, offset, problem) from None

    def _check_header(self) -> None:
        if len(self.data) < layout.HEADER.size:
            self._fail("header", 0, f"the file has {len(self.data)} bytes: expected at least {layout.HEADER.size}")
        magic, version, zero, crc, zero2 = layout.HEADER.unpack_from(self.data)
        if magic != layout.MAGIC:
            self._fail("header", 0, f"begins with {magic!r}: expected {layout.MAGIC!r}: not an activations file")
        if crc != crc32(self.data[:16]) or zero or zero2:
            self._fail("header", 0, "wrong checksum")
        if version != layout.FORMAT_VERSION:
            self._fail("header", 8, f"format version {version}, this program reads {layout.FORMAT_VERSION}")

    def _sections(self) -> Iterator[tuple[bytes, int, bytes]]:
        """Yield type, offset and payload of each complete section."""
        at = layout.HEADER.size
        while at < len(self.data):
            if at + layout.SECTION.size > len(self.data):
                return
            kind, zero, length, crc, head_crc = layout.SECTION.unpack_from(self.data, at)
            if head_crc != crc32(self.data[at : at + 20]) or zero:
                self._fail("section", at, "wrong checksum of its head")
            start = at + layout.SECTION.size
            if length > layout.LONGEST_PAYLOAD:
                self._fail("section", at, f"{length} bytes, at most {layout.LONGEST_PAYLOAD} are allowed")
            if start + length > len(self.data):
                return
            payload = self.data[start : start + length]
            if crc != crc32(payload):
                self._fail(f"section {kind.decode('ascii', 'replace')!r}", at, "wrong checksum")
            yield kind, at, payload
            at = start + length

    def _json(self, type_: TypeAdapter[T], where: str, at: int, payload: bytes) -> T:
        text = decompressed(self.path, where, at, payload, None)
        try:
            return type_.validate_json(text)
        except ValidationError as error:
            self._fail(where, at, problem_in_json(error, text, type_))

    def _point(self, payload: bytes, at: int) -> TrainingPoint:
        where = f"point {len(self.points)}"
        point = self._json(records.POINT, where, at, payload)
        if self.points and point.iteration < self.points[-1].iteration:
            self._fail(where, at, f"iteration {point.iteration} comes after {self.points[-1].iteration}")
        n_maps, seen = len(self.feature_maps or ()), set()
        for statistics in point.maps:
            index = statistics.map
            if index >= n_maps or index in seen:
                self._fail(where, at, f"feature map {index}: expected each of 0 to {n_maps - 1} at most once")
            seen.add(index)
            if statistics.nonzero > statistics.elements:
                self._fail(where, at, f"feature map {index}: {statistics.nonzero} of {statistics.elements} not zero")
            if statistics.sizes and not statistics.sized_elements:
                self._fail(where, at, f"feature map {index}: sizes of no elements")
        return point

    def _stored_values(self, payload: bytes, at: int) -> tuple[int, int, StoredValues]:
        """Return the indices of point and feature map, and the position of their values."""
        where, head, maps = "values", layout.VALUES_HEAD, self.feature_maps or []
        if len(payload) < head.size:
            self._fail(where, at, f"{len(payload)} bytes: expected at least {head.size}")
        point, map_, elements, code, axes, zero = head.unpack_from(payload)
        valid = point < len(self.points) and map_ < len(maps) and code in layout.DTYPES and 2 <= axes <= 4 and not zero
        if not valid:
            self._fail(
                where, at, f"of feature map {map_} at point {point}, type {code}, {axes} axes: expected known ones"
            )
        if len(payload) < head.size + 4 * axes:
            self._fail(where, at, f"{len(payload)} bytes, too few for {axes} axes")
        shape = struct.unpack_from(f"<{axes}I", payload, head.size)
        expected = maps[map_].shape
        if shape[1:] != expected or not shape[0] or math.prod(shape) != elements:
            self._fail(where, at, f"shape {shape}, {elements} elements: expected (samples, {expected})")
        start = at + layout.SECTION.size
        return point, map_, StoredValues(start, crc32(payload), len(payload), shape, layout.DTYPES[code])
