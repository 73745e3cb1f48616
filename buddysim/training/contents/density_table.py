"""Contents of feature maps from a user's table, TOML or CSV.

TOML: ``[[feature_maps]]`` tables; CSV: the same keys as columns. A row has ``layer`` (a name, ``*`` stands for any
text) or ``kind`` (relu, fc-relu, pool), and ``density`` or ``ratio``. Several rows of one kind each have a ``depth``, 0
to 1.

A row with ``layer`` has priority over rows with ``kind``. Between two depths of a kind, values are interpolated
linearly. A ReLU or pooling layer without a row counts as dense, which its origin states.
"""

from __future__ import annotations

import difflib
import fnmatch
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.schema import Filled, Schema, checked, checked_cells
from buddysim.base.textfile import csv_rows, parse_toml, read_text
from buddysim.training.contents.dense import dense
from buddysim.training.contents.interpolate import PiecewiseLinear
from buddysim.training.contents.maps import SOURCED, Codec, FeatureMapRole, MapContents, roles, walk
from buddysim.training.networks.graph import Layer, Network

LARGEST_FILE = 2**20


class DensityFields(Schema):
    """The fields of a row, in TOML and in CSV."""

    layer: Filled | None = None
    kind: Literal["relu", "fc-relu", "pool"] | None = None
    depth: Annotated[float, Field(ge=0, le=1)] | None = None
    density: Annotated[float, Field(ge=0, le=1)] | None = None
    ratio: Annotated[float, Field(ge=0.5, le=1000)] | None = None


class DensityFile(Schema):
    """A table in TOML."""

    feature_maps: list[DensityFields] = Field(default_factory=list)


@dataclass(frozen=True)
class DensityRow:
    """Row of the table: a layer's name or a kind with a depth, and a density or a ratio."""

    where: str
    layer: str | None
    kind: str | None
    depth: float | None
    density: float | None
    ratio: float | None


class TableContents:
    """Contents of a network's feature maps from a table.

    Parameters
    ----------
    rows : rows of the table
    name : name of the table, for messages
    """

    def __init__(self, rows: list[DensityRow], name: str) -> None:
        self.rows = rows
        self.name = name
        self.description = f"table {name}"

    @classmethod
    @within_budget
    def read(cls, path: str | Path) -> TableContents:
        """Read a ``.toml`` or ``.csv`` file.

        Raises
        ------
        BuddysimError
            if the file has another suffix, has no row, or a row is invalid
        """
        path = Path(path)
        readers = {".toml": _toml_rows, ".csv": _csv_rows}
        if path.suffix not in readers:
            raise BuddysimError(f"{path}: densities: expected a .toml or .csv file")
        rows = readers[path.suffix](path, read_text(path, "table of feature maps", LARGEST_FILE))
        if not rows:
            raise BuddysimError(f"{path}: names no feature maps: expected at least one row")
        return cls(rows, str(path))

    def made_by(self, codec: Codec) -> str:
        """Return a phrase that says so: a table names no compressors."""
        return "compressors that the table does not name"

    def contents(self, network: Network, batch: int, codec: Codec) -> dict[int, MapContents]:
        """Return the contents of every layer's output, by layer index.

        Raises
        ------
        BuddysimError
            if a row names no ReLU or pooling layer of the network, or the compressed size does not follow from a
            density
        """
        by_layer = self._by_layer(network)
        by_kind = {kind: self._line(kind, codec) for kind in SOURCED}

        def sourced(role: FeatureMapRole, layer: Layer, before: MapContents) -> MapContents:
            if layer.index in by_layer:
                row = by_layer[layer.index]
                return MapContents(
                    row.density, _compressed_fraction(row, codec), f"{self.description}: layer {layer.name}"
                )
            line = by_kind[role.kind]
            if line is not None:
                density, compressed_fraction = line
                at = density.value_at(role.depth) if density else None
                return MapContents(at, compressed_fraction.value_at(role.depth), f"{self.description}: {role.kind}")
            return MapContents(1.0, dense(codec).compressed_fraction, f"{self.description}: not named, taken as dense")

        return walk(network, dense(codec), codec, sourced)

    def _by_layer(self, network: Network) -> dict[int, DensityRow]:
        row_by_layer: dict[int, DensityRow] = {}
        with_role = roles(network)
        names = {layer.name: layer.index for layer in network.layers}
        for row in self.rows:
            if row.layer is None:
                continue
            hits = [names[name] for name in names if fnmatch.fnmatchcase(name, row.layer)]
            if not hits:
                near = difflib.get_close_matches(row.layer, names, 1, 0.4)
                hint = f" (nearest: {near[0]})" if near else ""
                raise BuddysimError(f"{row.where}: layer {row.layer!r}: {network.name} has none{hint}")
            able = [index for index in hits if index in with_role]
            if not able:
                kind = network.layers[hits[0]].kind
                raise BuddysimError(f"{row.where}: layer {row.layer!r} is {kind}: expected a ReLU or pooling layer")
            for index in able:
                row_by_layer.setdefault(index, row)
        return row_by_layer

    def _line(self, kind: str, codec: Codec) -> tuple[PiecewiseLinear | None, PiecewiseLinear] | None:
        """Return density and compressed fraction as functions of depth, for the rows of a kind; None without rows."""
        rows = [row for row in self.rows if row.kind == kind]
        if not rows:
            return None
        compressed_fractions = PiecewiseLinear.through(
            (row.depth or 0.0, _compressed_fraction(row, codec)) for row in rows
        )
        densities = [(row.depth or 0.0, row.density) for row in rows if row.density is not None]
        return PiecewiseLinear.through(densities) if len(densities) == len(rows) else None, compressed_fractions


def _compressed_fraction(row: DensityRow, codec: Codec) -> float:
    if row.ratio is not None:
        return 1 / row.ratio
    assert row.density is not None
    if codec.from_density is None:
        raise BuddysimError(f"{row.where}: sizes of {codec.algorithm} do not follow from a density: expected a ratio")
    return codec.from_density(row.density)


def _toml_rows(path: Path, text: str) -> list[DensityRow]:
    rows = checked(DensityFile, parse_toml(text, str(path)), str(path)).feature_maps
    return [_row(f"{path}: feature_maps[{number}]", row) for number, row in enumerate(rows)]


def _csv_rows(path: Path, text: str) -> list[DensityRow]:
    lines = csv_rows(text, str(path))
    _, header = next(lines, (0, []))
    rows = []
    for number, cells in lines:
        where = f"{path}: line {number}"
        if len(cells) != len(header):
            raise BuddysimError(f"{where}: expected {len(header)} fields, as in the header")
        named = {key.strip(): cell.strip() for key, cell in zip(header, cells, strict=True) if cell.strip()}
        rows.append(_row(where, checked_cells(DensityFields, named, where)))
    return rows


def _row(where: str, row: DensityFields) -> DensityRow:
    if (row.layer is None) == (row.kind is None):
        raise BuddysimError(f"{where}: expected either a layer or a kind")
    if (row.density is None) == (row.ratio is None):
        raise BuddysimError(f"{where}: expected either a density or a ratio")
    if row.layer is not None and row.depth is not None:
        raise BuddysimError(f"{where}: depth: expected none next to a layer's name, got {row.depth:g}")
    return DensityRow(where, row.layer, row.kind, row.depth, row.density, row.ratio)
