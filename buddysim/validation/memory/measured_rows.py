"""The published peaks: training iterations and single layers, and how the rows of each source are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from buddysim.base.textfile import csv_rows, parse_json, parse_toml

_DATA = resources.files("buddysim.validation") / "data"


@dataclass(frozen=True)
class MeasuredTraining:
    """A published peak of training iterations.

    Attributes
    ----------
    id, source_set : row and source of `llm_training.csv`
    cells : the row, by column
    """

    id: str
    source_set: str
    cells: Mapping[str, str]

    @property
    def printed_gib(self) -> float | None:
        """The printed figure in GiB; None where its unit isn't stated."""
        text = self.cells["peak_memory_gib"]
        return float(text) if text else None

    @property
    def is_usable(self) -> bool:
        """Whether the setup is stated well enough to compare."""
        return self.cells["usable_memory"] == "yes"


@dataclass(frozen=True)
class MeasuredLayer:
    """A published peak of one layer.

    Attributes
    ----------
    kernel, provider, mode : what ran, whose code, and which part of it: ``forward``, ``backward`` or ``full``
    name, value : the size that the script varies
    config : the other sizes
    peak_mib : the printed figure
    gpu, version : GPU, and version of Liger
    """

    kernel: str
    provider: str
    mode: str
    name: str
    value: int
    config: Mapping[str, Any]
    peak_mib: float
    gpu: str
    version: str


@cache
def training_rows() -> tuple[MeasuredTraining, ...]:
    """Return every row with a memory figure."""
    rows = _table("llm_training.csv")
    return tuple(MeasuredTraining(row["id"], row["source_set"], row) for row in rows)


@cache
def layer_rows() -> tuple[MeasuredLayer, ...]:
    """Return every peak of a layer."""
    return tuple(
        MeasuredLayer(
            row["kernel"], row["provider"], row["mode"], row["x_name"], int(row["x_value"]),
            parse_json(row["config"], "llm_layers.csv"), float(row["peak_mb"]), row["gpu"], row["liger_version"],
        )
        for row in _table("llm_layers.csv")
    )  # fmt: skip


@cache
def readings() -> Mapping[str, Mapping[str, Any]]:
    """Return how the rows of each source are read."""
    return parse_toml((_DATA / "llm_readings.toml").read_text(encoding="utf-8"), "llm_readings.toml")


def _table(name: str) -> list[dict[str, str]]:
    text = (_DATA / name).read_text(encoding="utf-8")
    (_, header), *rows = csv_rows(text, name)
    return [dict(zip(header, row, strict=True)) for _, row in rows]
