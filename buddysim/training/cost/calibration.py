"""Calibrations: TOML files of the fitted numbers that layer times depend on.

`SharedConstants` hold for all GPUs: the shape of the curves, ratios between CONV algorithms, fractions of the
bandwidth. A `Calibration` holds the efficiencies of one GPU with one library version. Both are bundled as rounded
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal

from pydantic import Field

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.schema import Filled, Schema, checked, one_of
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


Fraction = Annotated[float, Field(ge=1e-4, le=10)]


class CalibrationFile(Schema):
    """The keys of a calibration file, those of `Calibration`."""

    format: Literal[1]
    machine: Filled
    library: Filled
    efficiency: dict[one_of(PASSES), dict[one_of(GROUPS), Fraction]]  # type: ignore[valid-type]
    bandwidth: dict[str, dict[Literal["forward", "backward"], Fraction]] = Field(default_factory=dict)
    limited_workspace: bool = False
    measured: dict[str, dict[str, Annotated[int, Field(ge=0)]]] = Field(default_factory=dict)
    source: list[str] = Field(default_factory=list)


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
    file = checked(CalibrationFile, parse_toml(text, where), where)
    for pass_ in PASSES:
        for group in GROUPS:
            if group not in file.efficiency.get(pass_, {}):
                raise BuddysimError(f"{where}: efficiency.{pass_}.{group}: this key is missing")
    tables = {name: dict(getattr(file, name)) for name in ("efficiency", "bandwidth", "measured")}
    return Calibration(
        file.machine, file.library, limited_workspace=file.limited_workspace, source=tuple(file.source), **tables
    )
