"""Calibrations: TOML files of the fitted numbers that layer times depend on.

`SharedConstants` hold for all GPUs: the shape of the curves, ratios between CONV algorithms, fractions of the
bandwidth. A `Calibration` holds the efficiencies of one GPU with one library version. Both are bundled as rounded
numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.textfile import parse_toml, toml_text
from buddysim.training.cost.curve import PassTimeModel
from buddysim.training.cost.work import CLASSES, PASSES

FORMAT = 1
LARGEST_FILE = 2**20
GROUPS = (*CLASSES, "fc")
#: Major versions of cuDNN that are modelled: oldest to newest.
VERSIONS = range(2, 10)
DATA = resources.files("buddysim.training.cost") / "data"

Table = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class SharedConstants:
    """Fitted constants that hold for all GPUs.

    Attributes
    ----------
    curves : by pass of a CONV (`curve_name`); ``"fc"``: every matrix product of a fully connected layer
    efficiency : generic fractions of the peak rate by pass and group, for GPUs without timings
    deviation : logarithm of a group's efficiency over the mean efficiency of its GPU, by pass and group
    bandwidth : fractions of the peak bandwidth by kind of layer and pass
    ratio : time of a CONV algorithm relative to the implicit GEMM with precomputed offsets, by pass and algorithm;
        ``winograd`` on 3x3 windows
    fft : fraction of the peak rate that products of spectra reach, by pass
    """

    curves: Mapping[str, PassTimeModel]
    efficiency: Table
    deviation: Table
    bandwidth: Table
    ratio: Table
    fft: Mapping[str, float]


@dataclass(frozen=True)
class Calibration:
    """Efficiencies of one GPU with one library version.

    Attributes
    ----------
    efficiency : fraction of the peak rate by pass and group
    bandwidth : fraction of the peak bandwidth by kind of layer and pass, where it was measured
    limited_workspace : whether the timed algorithms had little workspace; False: the fastest ones were timed
    measured : number of shapes behind each efficiency, by pass and group; 0: derived from other GPUs
    source : sources of the timings, in lines
    """

    machine: str
    library: str
    efficiency: Table
    bandwidth: Table = field(default_factory=dict)
    limited_workspace: bool = False
    measured: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    source: tuple[str, ...] = ()

    def to_toml(self) -> str:
        """Return the text of a calibration file."""
        content: dict[str, Any] = {
            "format": FORMAT,
            "machine": self.machine,
            "library": self.library,
            "limited_workspace": self.limited_workspace,
            "source": list(self.source),
            "efficiency": self.efficiency,
            "measured": self.measured,
            "bandwidth": self.bandwidth,
        }
        return toml_text(content)


def version_of(library: str) -> int | None:
    """Return the major version of a name such as ``"cudnn5"``; None for another name."""
    digits = library.removeprefix("cudnn")
    return int(digits) if library.startswith("cudnn") and digits.isdecimal() and len(digits) < 4 else None


def check_version(library: str) -> None:
    """Refuse a version of cuDNN that is not modelled.

    Raises
    ------
    BuddysimError
        if the library's name is ``"cudnn"`` and a number outside `VERSIONS`
    """
    version = version_of(library)
    if version is not None and version not in VERSIONS:
        raise BuddysimError(
            f"library {shortened(library)} is not modelled: expected cudnn{VERSIONS[0]} (the oldest) to "
            f"cudnn{VERSIONS[-1]} (the newest)"
        )


@cache
def common() -> SharedConstants:
    """Load the bundled constants that hold for all GPUs."""
    content = parse_toml((DATA / "fitted" / "common.toml").read_text(encoding="utf-8"))
    return SharedConstants(
        curves={name: PassTimeModel(**constants) for name, constants in content["curve"].items()},
        efficiency=content["efficiency"],
        deviation=content["deviation"],
        bandwidth=content["bandwidth"],
        ratio=content["ratio"],
        fft=content["fft"],
    )


def common_toml(shared: SharedConstants) -> str:
    """Return the text of the file that `common` reads."""
    content: dict[str, Any] = {"format": FORMAT}
    content["curve"] = {
        name: {part.name: getattr(curve, part.name) for part in fields(curve)} for name, curve in shared.curves.items()
    }
    for name in ("efficiency", "deviation", "bandwidth", "ratio", "fft"):
        content[name] = getattr(shared, name)
    return toml_text(content)


@cache
def shipped() -> dict[tuple[str, str], Calibration]:
    """Load the bundled calibrations, by machine and library."""
    calibrations = {}
    for entry in sorted((DATA / "fitted").iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".toml") and entry.name != "common.toml":
            calibration = parse_calibration(entry.read_text(encoding="utf-8"), entry.name)
            calibrations[calibration.machine, calibration.library] = calibration
    return calibrations


def parse_calibration(text: str, where: str) -> Calibration:
    """Parse the text of a calibration file.

    Parameters
    ----------
    where : name of the file, for errors

    Raises
    ------
    BuddysimError
        if the text is no calibration
    """
    content = parse_toml(text, where)
    try:
        return _calibration(content)
    except ValueError as error:
        raise BuddysimError(f"{where}: {error}") from None


def _calibration(content: dict[str, Any]) -> Calibration:
    known = [part.name for part in fields(Calibration)]
    for name in content:
        if name not in (*known, "format"):
            raise ValueError(f"{shortened(name)[1:-1]}: unknown key{hint(name, known)}")
    if content.get("format") != FORMAT:
        raise ValueError(f"format: expected {FORMAT}, found {shortened(content.get('format'))}")
    for name in ("machine", "library"):
        if not isinstance(content.get(name), str) or not content[name]:
            raise ValueError(f"{name}: {shortened(content.get(name))} is not a text")
    efficiency = _fractions(content.get("efficiency"), "efficiency", PASSES, GROUPS)
    for pass_ in PASSES:
        for group in GROUPS:
            if group not in efficiency.get(pass_, {}):
                raise ValueError(f"efficiency.{pass_}.{group}: this key is missing")
    bounded = content.get("limited_workspace", False)
    if not isinstance(bounded, bool):
        raise ValueError(f"limited_workspace: {shortened(bounded)} is not true or false")
    source = content.get("source", [])
    if not isinstance(source, list) or not all(isinstance(line, str) for line in source):
        raise ValueError("source: expected a list of texts")
    return Calibration(
        machine=content["machine"],
        library=content["library"],
        efficiency=efficiency,
        bandwidth=_fractions(content.get("bandwidth", {}), "bandwidth", None, ("forward", "backward")),
        limited_workspace=bounded,
        measured=_counts(content.get("measured", {}), "measured"),
        source=tuple(source),
    )


def _counts(tables: object, where: str) -> dict[str, dict[str, int]]:
    if not isinstance(tables, dict):
        raise ValueError(f"{where}: {shortened(tables)} is not a table")
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ValueError(f"{where}.{shortened(name)[1:-1]}: {shortened(table)} is not a table")
        for key, count in table.items():
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise ValueError(
                    f"{where}.{shortened(name)[1:-1]}.{shortened(key)[1:-1]}: {shortened(count)}: expected a number of "
                    "timings"
                )
    return tables


def _fractions(
    tables: object, where: str, outer: tuple[str, ...] | None, inner: tuple[str, ...]
) -> dict[str, dict[str, float]]:
    if not isinstance(tables, dict):
        raise ValueError(f"{where}: this table is missing")
    fractions: dict[str, dict[str, float]] = {}
    for name, table in tables.items():
        if outer is not None and name not in outer:
            raise ValueError(f"{where}.{name}: unknown key{hint(name, outer)}")
        if not isinstance(table, dict):
            raise ValueError(f"{where}.{name}: {shortened(table)} is not a table")
        fractions[name] = {}
        for key, value in table.items():
            if key not in inner:
                raise ValueError(f"{where}.{name}.{key}: unknown key{hint(key, inner)}")
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"{where}.{name}.{key}: {shortened(value)} is not a number")
            if not 1e-4 <= value <= 10:
                raise ValueError(f"{where}.{name}.{key}: {value:g} is out of range: expected 0.0001 to 10")
            fractions[name][key] = float(value)
    return fractions
