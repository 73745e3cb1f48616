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
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.textfile import csv_rows, parse_toml, read_text
from buddysim.training.contents.dense import dense
from buddysim.training.contents.interpolate import PiecewiseLinear
from buddysim.training.contents.maps import SOURCED, Codec, FeatureMapRole, MapContents, roles, walk
from buddysim.training.networks.graph import Layer, Network

LARGEST_FILE = 2**20
_FIELDS = ("layer", "kind", "depth", "density", "ratio")


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
        return cls([_checked(where, row) for where, row in rows], str(path))

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


def _toml_rows(path: Path, text: str) -> list[tuple[str, dict[str, Any]]]:
    table = parse_toml(text, str(path))
    maps = table.get("feature_maps", [])
    if set(table) - {"feature_maps"} or not isinstance(maps, list) or not all(isinstance(row, dict) for row in maps):
        raise BuddysimError(f"{path}: expected [[feature_maps]] tables and nothing else")
    return [(f"{path}: feature_maps[{number}]", row) for number, row in enumerate(maps)]


def _csv_rows(path: Path, text: str) -> list[tuple[str, dict[str, Any]]]:
    lines = csv_rows(text, str(path))
    _, header = next(lines, (0, []))
    rows = []
    for number, cells in lines:
        where = f"{path}: line {number}"
        if len(cells) != len(header):
            raise BuddysimError(f"{where}: expected {len(header)} fields, as in the header")
        row = zip(header, cells, strict=True)
        rows.append((where, {key.strip(): cell.strip() for key, cell in row if cell.strip()}))
    return rows


def _checked(where: str, row: dict[str, Any]) -> DensityRow:
    for key in row:
        if key not in _FIELDS:
            raise BuddysimError(f"{where}: {shortened(key)}: unknown, expected one of {', '.join(_FIELDS)}")
    if ("layer" in row) == ("kind" in row):
        raise BuddysimError(f"{where}: expected either a layer or a kind")
    if ("density" in row) == ("ratio" in row):
        raise BuddysimError(f"{where}: expected either a density or a ratio")
    if "kind" in row and row["kind"] not in SOURCED:
        raise BuddysimError(f"{where}: kind {shortened(row['kind'])}: expected one of {', '.join(SOURCED)}")
    if "kind" in row and not isinstance(row["kind"], str):
        raise BuddysimError(f"{where}: kind: expected a text, found {shortened(row['kind'])}")
    if "layer" in row and ("depth" in row or not isinstance(row["layer"], str)):
        raise BuddysimError(f"{where}: expected a layer's name, without a depth")
    return DensityRow(
        where,
        row.get("layer"),
        row.get("kind"),
        _number(where, row, "depth", 0, 1),
        _number(where, row, "density", 0, 1),
        _number(where, row, "ratio", 0.5, 1000),
    )


def _number(where: str, row: dict[str, Any], key: str, least: float, most: float) -> float | None:
    if key not in row:
        return None
    try:
        value = float(row[key]) if not isinstance(row[key], bool) else float("nan")
    except (OverflowError, TypeError, ValueError):
        value = float("nan")
    if not least <= value <= most:
        raise BuddysimError(f"{where}: {key} {shortened(row[key])}: expected a number from {least:g} to {most:g}")
    return value
