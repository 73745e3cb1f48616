"""Points of analyses: `buddysim.analyses.analyse`, whose tables are kept as results are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from buddysim.analyses import REGISTRY, AnalysisOptions, AnalysisResult, analyse, reads, replays
from buddysim.analyses.version import MODEL_VERSION
from buddysim.base.errors import BuddysimError
from buddysim.base.result import file_name, software
from buddysim.machine import Machine
from buddysim.replay.version import MODEL_VERSION as REPLAY_VERSION
from buddysim.sweep import axis
from buddysim.sweep.axis import Axis, Value, canonical, file_value
from buddysim.sweep.contents import content_checksum
from buddysim.sweep.engine_protocol import Settings, plugin_checksums, require_file
from buddysim.sweep.engines import machines, replay

NAME = "analysis"
SUBJECT = "analysis"
#: Analyses have no time of their own.
TIME = "time_ps"
BASELINE = None
AGAINST = None
KEYS_READ = ()

#: Kinds of plug-ins that an analysis depends on.
PLUGIN_KINDS = ("compressor", "analysis", "replay scheme")

_DEFAULTS = AnalysisOptions()
_MACHINE = str(_DEFAULTS.machine)


def _numbers(raw: object) -> str:
    """``"0.1,0.2"``: several numbers."""
    parts = raw if isinstance(raw, list | tuple) else str(raw).split(",")
    return ",".join(f"{axis.number(part):g}" for part in parts)


def _names(raw: object) -> str:
    """``"bpc,zvc"``: several names."""
    parts = raw if isinstance(raw, list | tuple) else axis.text(raw).split(",")
    return ",".join(axis.text(part) for part in parts)


_AXES = {
    "analysis": Axis(axis.text, "name of the analysis", "NAME"),
    "trace": Axis(file_value, "trace file", "FILE", file=True),
    "machine": Axis(machines.machine_name, "machine of the replays of an analysis", "NAME|FILE.toml", _MACHINE),
    "compressors": Axis(
        _names, "compressors of memory-entries, separated by commas", "NAMES", ",".join(_DEFAULTS.compressors)
    ),
    "threshold": Axis(axis.number, "Buddy Threshold", "FRACTION", _DEFAULTS.threshold),
    "analysis_thresholds": Axis(
        _numbers, "Buddy Thresholds of the analysis `threshold`", "FRACTIONS", _numbers(_DEFAULTS.thresholds)
    ),
    "analysis_metadata_sizes": Axis(
        _numbers, "sizes of a metadata-cache slice, in bytes", "BYTES", _numbers(_DEFAULTS.metadata_sizes)
    ),
    "analysis_metadata_lines": Axis(
        _numbers, "sizes of a metadata-cache line, in bytes", "BYTES", _numbers(_DEFAULTS.metadata_lines)
    ),
    "profile_from": Axis(file_value, "trace on which target ratios are chosen", "FILE", file=True),
    "partial": Axis(axis.switch, "accept a trace file whose end is missing", "true|false", _DEFAULTS.partial),
}


@dataclass(frozen=True)
class StoredAnalysis:
    """A finding, and where it comes from."""

    finding: AnalysisResult
    provenance: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        finding = self.finding
        return {
            "title": finding.title,
            "columns": list(finding.columns),
            "rows": [list(row) for row in finding.rows],
            "notes": list(finding.notes),
            "provenance": self.provenance,
        }


def axis_of_option(name: str) -> str:
    """Return the axis of an option of `AnalysisOptions`; lists of values have a prefix that tells them from others."""
    return f"analysis_{name}" if name in ("thresholds", "metadata_sizes", "metadata_lines") else name


def model_version() -> int:
    return MODEL_VERSION


def axes() -> dict[str, Axis]:
    return dict(_AXES)


def checked(settings: Settings, names: Iterable[str]) -> None:
    """Refuse wrong values of these axes."""
    names = list(names)
    REGISTRY.find(str(settings["analysis"]))
    if settings.get("trace") is None:
        raise BuddysimError(f"analysis {settings['analysis']}: expected trace to have a value")
    for name in names:
        if _AXES[name].file and settings.get(name) is not None:
            require_file(str(settings[name]), name)
            replay.check_complete(str(settings[name]), settings)
    options(settings)


def options(settings: Settings) -> AnalysisOptions:
    """The options of a point.

    Raises
    ------
    BuddysimError
        an unknown compressor, a number out of range
    """
    full = normalised(settings)
    several = {
        name: tuple(kind(part) for part in str(full[axis_of_option(name)]).split(","))
        for name, kind in (
            ("compressors", str), ("thresholds", float), ("metadata_sizes", _whole), ("metadata_lines", _whole)
        )
    }  # fmt: skip
    arguments: dict[str, Any] = {
        "threshold": full["threshold"],
        "profile_from": full["profile_from"],
        "partial": full["partial"],
        **several,
    }
    return AnalysisOptions(machine=_machine(settings), **arguments)


def _whole(text: str) -> int:
    number = float(text)
    if not number.is_integer():
        raise BuddysimError(f"metadata cache: {text}: expected an integer number of bytes")
    return int(number)


def normalised(settings: Settings) -> dict[str, Value]:
    """The settings with all defaults; what the analysis never reads has its default too."""
    full: dict[str, Value] = {name: each.default for name, each in _AXES.items()}
    full |= {name: value for name, value in settings.items() if value is not None and name in _AXES}
    read = {"analysis", "trace", "partial", *map(axis_of_option, reads(str(full["analysis"])))}
    return {name: value if name in read else _AXES[name].default for name, value in full.items()}


def machine_value(settings: Settings, key: str, value: object) -> Any:
    return machines.canonical_value(Machine, _machine_name(settings), key, value)


def identity(settings: Settings) -> dict[str, str]:
    """See `Engine.identity`."""
    full = normalised(settings)
    texts = {
        name: canonical(content_checksum(str(full[name])) if each.file and full[name] is not None else full[name])
        for name, each in _AXES.items()
        if name != "machine"
    }
    if replays(str(full["analysis"])):
        texts["replay_version"] = str(REPLAY_VERSION)
    for file, checksum in plugin_checksums(PLUGIN_KINDS).items():
        texts[f"plugin:{file}"] = checksum
    return texts


def machine_identity(settings: Settings) -> str:
    """The checksum of the machine; of the default one where nothing is replayed."""
    if not replays(str(settings["analysis"])):
        return machines.checksum(Machine, _MACHINE, ())
    return machines.checksum(Machine, _machine_name(settings), machines.overrides_of(settings))


def check_machine(settings: Settings) -> None:
    _machine(settings)


def columns(settings: Settings) -> dict[str, Value]:
    """See `Engine.columns`."""
    full = normalised(settings)
    own = {name: full[name] for name in _AXES if name != "machine"}
    return own | {"machine": _machine(settings).name, "scheme": "buddy" if replays(str(full["analysis"])) else "none"}


def result_columns(settings: Settings, result: Mapping[str, Any]) -> dict[str, Value]:
    """Return nothing: the tables of an analysis are no columns."""
    return {}


def simulate(settings: Settings) -> StoredAnalysis:
    """See `Engine.simulate`; traces stay open for the points to come."""
    full, selected = normalised(settings), options(settings)
    trace = replay.opened(str(full["trace"]))
    finding = analyse(trace, str(full["analysis"]), selected)
    about = {
        "analysis": full["analysis"],
        "trace": file_name(trace.path),
        "trace_checksum": trace.fingerprint,
        "options": _shown(selected, reads(str(full["analysis"]))),
        "software": software(),
    }  # fmt: skip
    return StoredAnalysis(finding, about)


def _shown(selected: AnalysisOptions, read: tuple[str, ...]) -> dict[str, Any]:
    """The options that were read, as plain values."""
    values = {name: getattr(selected, name) for name in read}
    if "machine" in values:
        values["machine"] = selected.loaded_machine.name
    if values.get("profile_from") is not None:
        values["profile_from"] = file_name(values["profile_from"])
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def memory_bytes(settings: Settings) -> int:
    """As much as a replay of the trace."""
    return replay.memory_bytes(settings)


def _machine_name(settings: Settings) -> str:
    return str(settings.get("machine") or _AXES["machine"].default)


def _machine(settings: Settings) -> Machine:
    return machines.changed_machine(Machine, _machine_name(settings), machines.overrides_of(settings))
