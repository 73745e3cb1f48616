"""The activations file: what the feature maps of a network held while it was trained; docs/activations.md defines it.

A file has the network's maps as `MapInfo`, and for points of the training (`Point`) each map's density and what
compressors make of it (`MapStatistics`), with some maps themselves. Written by a capture of a training script or by
`buddysim.training.contents.measure`; read by whatever compresses maps, and by the figures of sparsity over training.
"""

from __future__ import annotations

import contextlib
import math
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, BinaryIO, Literal, NoReturn, TypeVar

import numpy as np
import zstandard
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from zlib_ng.zlib_ng import crc32

from buddysim.base.errors import BuddysimError
from buddysim.compress.tensors import TensorRatio

MAGIC = b"\x8fMAPS\x01\r\n"
FORMAT_VERSION = 1
#: The measurement that ships with the package.
SHIPPED = "fashion-mnist.maps"

_HEADER = struct.Struct("<8sIIII")
_SECTION = struct.Struct("<4sIQII")
_MAP = struct.Struct("<IIIBBH")
_PROVENANCE, _MAPS, _POINT, _VALUES, _END = b"PROV", b"MAPS", b"PONT", b"VALU", b"DONE"
_LONGEST_PAYLOAD = 2**31
_LONGEST_TEXT = 64 * 2**20
_DTYPES: dict[int, np.dtype[Any]] = {1: np.dtype("<f4"), 2: np.dtype("<f2"), 3: np.dtype("u1")}

Count = Annotated[int, Field(ge=0, lt=2**62)]
Positive = Annotated[int, Field(ge=1, lt=2**40)]
Text = Annotated[str, Field(max_length=65536)]
_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
T = TypeVar("T")


class ActivationsError(BuddysimError):
    """An activations file that can't be read: the file, the section, its offset, what was expected."""

    def __init__(self, path: str | os.PathLike[str], section: str, offset: int, problem: str) -> None:
        super().__init__(f"{os.fspath(path)}: {section} at offset {offset}: {problem}")


@dataclass(frozen=True)
class MapInfo:
    """A feature map of the network.

    Attributes
    ----------
    name : of the layer that writes it last, as the program names it
    kind : of that layer: ``"input"``, ``"conv"``, ``"fc"``, ``"relu"``, ``"maxpool"``, ``"dropout"``, ...
    shape : of one sample, (C, H, W) or (features,)
    follows : the kind of layer whose output it works on: of a ReLU ``"conv"``, ``"fc"``, ``"batchnorm"``, ``"add"``
    weight_layers : CONV and FC layers at or before it, along the order in which they ran
    depth : 0 behind the first CONV layer, 1 behind the last one; in the classifier the same with FC layers
    part : ``"features"``, or ``"classifier"`` from the first FC layer on
    """

    __pydantic_config__ = _STRICT

    name: Text
    kind: Text
    shape: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=3)]
    follows: Text = ""
    weight_layers: Count = 0
    depth: Annotated[float, Field(ge=0, le=1)] = 0.0
    part: Literal["features", "classifier"] = "features"

    @property
    def elements(self) -> int:
        """Elements of one sample."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class CodeSize:
    """What a compressor made of a map: all its windows' codes, in bits.

    `mask_bits` of them only say where the zeros are (ZVC). See `buddysim.compress.tensors`.
    """

    __pydantic_config__ = _STRICT

    algorithm: Text
    layout: Text
    window: Positive
    bits: Count
    mask_bits: Count = 0


@dataclass(frozen=True)
class MapStatistics:
    """A map at one point of the training.

    Attributes
    ----------
    map : its number
    elements, nonzero : of all samples; a word is zero if all its bits are
    sizes : of its codes
    sized_elements : of the samples that `sizes` are of
    """

    __pydantic_config__ = _STRICT

    map: Count
    elements: Positive
    nonzero: Count
    sizes: tuple[CodeSize, ...] = ()
    sized_elements: Count = 0

    @property
    def density(self) -> float:
        """Share of the elements that aren't zero."""
        return self.nonzero / self.elements

    def ratios(self) -> list[TensorRatio]:
        """The sizes as `buddysim.compress.tensors.tensor_ratios` gives them, of words of 4 bytes."""
        raw = 4 * self.sized_elements
        return [TensorRatio(s.algorithm, s.layout, s.window, raw, s.bits, s.mask_bits) for s in self.sizes]


@dataclass(frozen=True)
class Point:
    """A point of the training.

    Attributes
    ----------
    iteration : optimizer steps before it
    epoch : passes over the data before it; 0 throughout where nobody knows
    samples : of the batch that the maps are of
    maps : statistics, by the order of their maps
    loss : of the last training batch before it, None before the first and where it wasn't a number
    accuracy : share of held-out samples that were classified right, where it was measured
    learning_rate : of the next step, where it is known
    """

    __pydantic_config__ = _STRICT

    iteration: Count
    epoch: Annotated[float, Field(ge=0)]
    samples: Positive
    maps: tuple[MapStatistics, ...]
    loss: float | None = None
    accuracy: Annotated[float, Field(ge=0, le=1)] | None = None
    learning_rate: float | None = None

    def statistics(self, map: int) -> MapStatistics | None:
        """Of one map, None where it wasn't seen at this point."""
        return next((found for found in self.maps if found.map == map), None)


@dataclass(frozen=True)
class _End:
    __pydantic_config__ = _STRICT

    points: Count
    values: Count
    state: Text


@dataclass(frozen=True)
class _Values:
    """Where a map's values lie in the file."""

    offset: int
    crc: int
    bytes: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


_MAPS_TYPE = TypeAdapter(list[MapInfo])
_POINT_TYPE = TypeAdapter(Point)
_END_TYPE = TypeAdapter(_End)
_PROVENANCE_TYPE: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str], config=ConfigDict(strict=True))


@dataclass
class Activations:
    """An activations file that was read; maps' values are read when they are asked for.

    Attributes
    ----------
    path : of the file
    provenance : what made it, from which network, data and program
    maps : of the network, in the order in which they are written
    points : in the order of training
    state : ``"finished"``, or what ended the capture before
    """

    path: Path
    provenance: dict[str, str]
    maps: tuple[MapInfo, ...]
    points: tuple[Point, ...]
    state: str
    _values: dict[tuple[int, int], _Values] = field(default_factory=dict, repr=False)

    @cached_property
    def densities(self) -> NDArray[np.float64]:
        """Density by point and map; NaN where a map wasn't seen."""
        found = np.full((len(self.points), len(self.maps)), np.nan)
        for row, point in enumerate(self.points):
            for statistics in point.maps:
                found[row, statistics.map] = statistics.density
        return found

    def mean_density(self, map: int) -> float | None:
        """A map's density on average over the training: straight lines between points, by iteration."""
        seen = [(p.iteration, s.density) for p in self.points if (s := p.statistics(map)) is not None]
        if not seen:
            return None
        span = seen[-1][0] - seen[0][0]
        if span == 0:
            return math.fsum(density for _, density in seen) / len(seen)
        return math.fsum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in pairwise(seen)) / span

    @property
    def stored_values(self) -> list[tuple[int, int]]:
        """Number of point and number of map of every map whose values are there."""
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
            with self.path.open("rb") as file:
                file.seek(found.offset)
                payload = file.read(found.bytes)
        except OSError as error:
            raise BuddysimError(f"{self.path}: can't be read: {error.strerror}") from None
        if len(payload) != found.bytes or crc32(payload) != found.crc:
            raise ActivationsError(self.path, where, found.offset, "the file changed since it was opened")
        start = _MAP.size + 4 * len(found.shape)
        expected = math.prod(found.shape) * found.dtype.itemsize
        planes = _decompressed(self.path, where, found.offset, payload[start:], expected)
        bytes_ = np.frombuffer(planes, np.uint8).reshape(found.dtype.itemsize, -1)
        return np.ascontiguousarray(bytes_.T).view(found.dtype).reshape(found.shape)


class ActivationsWriter:
    """Writes an activations file; a context manager.

    The file appears under its name when it is complete. With `partial` it is there from the start, and what was
    written stays if the writing is interrupted: a reader takes every complete section.

    Parameters
    ----------
    path : the file to write
    provenance : texts by subject: ``tool``, ``version``, ``source``, ``licence``, ``command``, ``network``, ...
    maps : of the network
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        provenance: dict[str, str],
        maps: Sequence[MapInfo],
        *,
        partial: bool = False,
        compression_level: int = 9,
    ) -> None:
        self.path = Path(path)
        self.partial = partial
        self.maps = tuple(maps)
        self._written_to = self.path if partial else self.path.with_name(f".{self.path.name}.{os.getpid()}.partial")
        self._compressor = zstandard.ZstdCompressor(level=compression_level, write_content_size=True)
        self._points = self._values = 0
        self._file: BinaryIO | None = None
        try:
            self._file = self._written_to.open("wb")
        except OSError as error:
            raise BuddysimError(f"{self.path}: can't be written: {error.strerror}") from None
        head = _HEADER.pack(MAGIC, FORMAT_VERSION, 0, 0, 0)[:16]
        self._put(head + struct.pack("<II", crc32(head), 0))
        self._text(_PROVENANCE, _PROVENANCE_TYPE.dump_json(provenance))
        self._text(_MAPS, _MAPS_TYPE.dump_json(list(self.maps)))

    def __enter__(self) -> ActivationsWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def add_point(self, point: Point) -> int:
        """A point of the training; gives its number."""
        known = set()
        for statistics in point.maps:
            if not statistics.map < len(self.maps) or statistics.map in known:
                raise ValueError(f"point {self._points}: map {statistics.map} is unknown, or there twice")
            known.add(statistics.map)
        self._text(_POINT, _POINT_TYPE.dump_json(_finite(point)))
        self._points += 1
        return self._points - 1

    def add_values(self, point: int, map: int, values: NDArray[Any]) -> None:
        """The values of a map at a point, (samples, *shape): float32, float16, or bool for "is not zero"."""
        if not (0 <= point < self._points and 0 <= map < len(self.maps)):
            raise ValueError(f"values of map {map} at point {point}: there is no such map or point")
        if values.ndim < 2 or values.shape[1:] != self.maps[map].shape or not len(values):
            raise ValueError(f"values of shape {values.shape}: expected (samples, {self.maps[map].shape})")
        if values.dtype == np.bool_:
            values = values.view(np.uint8)
        code = next((code for code, dtype in _DTYPES.items() if dtype == values.dtype), None)
        if code is None:
            raise ValueError(f"values of type {values.dtype}: expected float32, float16 or bool")
        planes = np.ascontiguousarray(values).reshape(-1, 1).view(np.uint8).T
        head = _MAP.pack(point, map, math.prod(values.shape), code, values.ndim, 0)
        shape = struct.pack(f"<{values.ndim}I", *values.shape)
        self._section(_VALUES, head + shape + self._compressor.compress(planes.tobytes()))
        self._values += 1

    def close(self, state: str = "finished") -> None:
        """Ends the file and gives it its name; `state` says what ended the capture."""
        if self._file is None:
            return
        try:
            self._text(_END, _END_TYPE.dump_json(_End(self._points, self._values, state)))
            self._file.close()
            self._file = None
            if not self.partial:
                self._written_to.replace(self.path)
        except OSError as error:
            self.abort()
            raise BuddysimError(f"{self.path}: can't be written: {error.strerror}") from None
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Gives up: removes what was written, or with `partial` keeps its complete sections."""
        if self._file is not None:
            file, self._file = self._file, None
            with contextlib.suppress(OSError):
                file.close()
            if not self.partial:
                self._written_to.unlink(missing_ok=True)

    def _text(self, kind: bytes, text: bytes) -> None:
        self._section(kind, self._compressor.compress(text))

    def _section(self, kind: bytes, payload: bytes) -> None:
        head = _SECTION.pack(kind, 0, len(payload), crc32(payload), 0)[:20]
        self._put(head + struct.pack("<I", crc32(head)) + payload)

    def _put(self, data: bytes) -> None:
        if self._file is None:
            raise ValueError("the activations file is closed")
        try:
            self._file.write(data)
            if self.partial:
                self._file.flush()
        except OSError as error:
            raise BuddysimError(f"{self.path}: can't be written: {error.strerror}") from None


def load(path: str | os.PathLike[str] | None = None) -> Activations:
    """An activations file; None: the measurement that ships with the package."""
    if path is None:
        path = Path(str(resources.files("buddysim.training.contents") / "data" / SHIPPED))
    return _Reader(Path(path)).read()


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if path.is_dir():
                raise BuddysimError(f"{path}: is a folder: expected an activations file")
            self.data = path.read_bytes()
        except (OSError, ValueError) as error:
            raise BuddysimError(f"{path}: can't be read: {getattr(error, 'strerror', None) or error}") from None

    def read(self) -> Activations:
        self._check_header()
        provenance: dict[str, str] | None = None
        maps: list[MapInfo] | None = None
        points: list[Point] = []
        values: dict[tuple[int, int], _Values] = {}
        end: _End | None = None
        at, payload = _HEADER.size, b""
        for kind, at, payload in self._sections():
            where = f"section {kind.decode('ascii', 'replace')!r}"
            if end is not None:
                self._fail(where, at, "comes after the end")
            if (provenance is None) != (kind == _PROVENANCE) or (
                provenance is not None and (maps is None) != (kind == _MAPS)
            ):
                self._fail(where, at, "out of order: expected one PROV, one MAPS, then points and values")
            if kind == _PROVENANCE:
                provenance = self._json(_PROVENANCE_TYPE, where, at, payload)
            elif kind == _MAPS:
                maps = self._json(_MAPS_TYPE, where, at, payload)
            elif maps is None:
                self._fail(where, at, "comes before the maps")
            elif kind == _POINT:
                points.append(self._point(payload, at, maps, points))
            elif kind == _VALUES:
                key, found = self._map_values(payload, at, maps, points)
                if key in values:
                    self._fail(where, at, f"values of map {key[1]} at point {key[0]} are there twice")
                values[key] = found
            elif kind == _END:
                end = self._json(_END_TYPE, where, at, payload)
                if (end.points, end.values) != (len(points), len(values)):
                    self._fail(
                        where, at, f"counts {end.points} points, {end.values} values, not {len(points)}, {len(values)}"
                    )
            else:
                self._fail(where, at, "unknown")
        if end is not None and at + _SECTION.size + len(payload) != len(self.data):
            self._fail("end of file", at, "something comes after the end")
        if provenance is None or maps is None:
            self._fail("end of file", at, "no provenance and maps: the file was interrupted before its first point")
        state = end.state if end else "interrupted: the file has no end"
        return Activations(self.path, provenance, tuple(maps), tuple(points), state, values)

    def _fail(self, section: str, offset: int, problem: str) -> NoReturn:
        raise ActivationsError(self.path, section, offset, problem) from None

    def _check_header(self) -> None:
        if len(self.data) < _HEADER.size:
            self._fail("header", 0, f"the file has {len(self.data)} bytes, expected at least {_HEADER.size}")
        magic, version, zero, crc, zero2 = _HEADER.unpack_from(self.data)
        if magic != MAGIC:
            self._fail("header", 0, f"begins with {magic!r}, expected {MAGIC!r}: not an activations file")
        if crc != crc32(self.data[:16]) or zero or zero2:
            self._fail("header", 0, "wrong checksum")
        if version != FORMAT_VERSION:
            self._fail("header", 8, f"format version {version}, this program reads {FORMAT_VERSION}")

    def _sections(self) -> Iterator[tuple[bytes, int, bytes]]:
        """(type, offset, payload); ends where a file that was interrupted ends: in the middle of a section."""
        at = _HEADER.size
        while at < len(self.data):
            if at + _SECTION.size > len(self.data):
                return
            kind, zero, length, crc, head_crc = _SECTION.unpack_from(self.data, at)
            if head_crc != crc32(self.data[at : at + 20]) or zero:
                self._fail("section", at, "wrong checksum of its head")
            start = at + _SECTION.size
            if length > _LONGEST_PAYLOAD:
                self._fail("section", at, f"{length} bytes, at most {_LONGEST_PAYLOAD} are allowed")
            if start + length > len(self.data):
                return
            payload = self.data[start : start + length]
            if crc != crc32(payload):
                self._fail(f"section {kind.decode('ascii', 'replace')!r}", at, "wrong checksum")
            yield kind, at, payload
            at = start + length

    def _json(self, type_: TypeAdapter[T], where: str, at: int, payload: bytes) -> T:
        text = _decompressed(self.path, where, at, payload, None)
        try:
            return type_.validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            self._fail(where, at, f"{place or 'text'}: {first['msg']}".replace("\n", " "))

    def _point(self, payload: bytes, at: int, maps: Sequence[MapInfo], before: Sequence[Point]) -> Point:
        where = f"point {len(before)}"
        point = self._json(_POINT_TYPE, where, at, payload)
        if before and point.iteration < before[-1].iteration:
            self._fail(where, at, f"iteration {point.iteration} comes after {before[-1].iteration}")
        known = set()
        for statistics in point.maps:
            if statistics.map >= len(maps) or statistics.map in known:
                self._fail(where, at, f"map {statistics.map}: expected each of 0 to {len(maps) - 1} at most once")
            known.add(statistics.map)
            if statistics.nonzero > statistics.elements:
                self._fail(where, at, f"map {statistics.map}: {statistics.nonzero} of {statistics.elements} not zero")
            if statistics.sizes and not statistics.sized_elements:
                self._fail(where, at, f"map {statistics.map}: sizes of no elements")
        return point

    def _map_values(
        self, payload: bytes, at: int, maps: Sequence[MapInfo], points: Sequence[Point]
    ) -> tuple[tuple[int, int], _Values]:
        where = "values"
        if len(payload) < _MAP.size:
            self._fail(where, at, f"{len(payload)} bytes, expected at least {_MAP.size}")
        point, map_, elements, code, axes, zero = _MAP.unpack_from(payload)
        if point >= len(points) or map_ >= len(maps) or code not in _DTYPES or not 2 <= axes <= 4 or zero:
            self._fail(where, at, f"of map {map_} at point {point}, type {code}, {axes} axes: expected known ones")
        if len(payload) < _MAP.size + 4 * axes:
            self._fail(where, at, f"{len(payload)} bytes, too few for {axes} axes")
        shape = struct.unpack_from(f"<{axes}I", payload, _MAP.size)
        if shape[1:] != maps[map_].shape or not shape[0] or math.prod(shape) != elements:
            self._fail(where, at, f"shape {shape}, {elements} elements: expected (samples, {maps[map_].shape})")
        return (point, map_), _Values(at + _SECTION.size, crc32(payload), len(payload), shape, _DTYPES[code])


def _decompressed(path: Path, where: str, at: int, frame: bytes, expected: int | None) -> bytes:
    """A zstd frame that states its content size; `expected`: that it has to be."""
    try:
        size = zstandard.frame_content_size(frame)
        most = _LONGEST_TEXT if expected is None else expected
        if not 0 <= size <= most or (expected is not None and size != expected) or size > 2**15 * max(len(frame), 1):
            wanted = f"at most {most}" if expected is None else str(expected)
            raise ActivationsError(path, where, at, f"{size} bytes when decompressed, expected {wanted}")
        return zstandard.ZstdDecompressor().decompress(frame)
    except zstandard.ZstdError as error:
        raise ActivationsError(path, where, at, f"can't be decompressed: {error}") from None


def _finite(point: Point) -> Point:
    """The point with None for a loss or a rate that isn't a number."""
    numbers = {
        name: value if value is None or math.isfinite(value) else None
        for name, value in (("loss", point.loss), ("learning_rate", point.learning_rate))
    }
    return Point(**{**{name: getattr(point, name) for name in point.__dataclass_fields__}, **numbers})


def code_sizes(ratios: Iterable[TensorRatio]) -> tuple[CodeSize, ...]:
    """What `buddysim.compress.tensors.tensor_ratios` found, as a point keeps it."""
    return tuple(CodeSize(r.algorithm, r.layout, r.window, r.bits, r.mask_bits) for r in ratios)
