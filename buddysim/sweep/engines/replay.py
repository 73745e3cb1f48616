"""Points of the replay engine: `buddysim.simulate`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

from buddysim.base.errors import TraceFileError
from buddysim.base.kinds import HOMES
from buddysim.base.option import field_options
from buddysim.base.ranges import parse_range
from buddysim.buddy import ProfileOptions
from buddysim.machine import Machine
from buddysim.replay.compute_gap_scale import exact_compute_gap_scale
from buddysim.replay.request import ReplayRequest
from buddysim.replay.result import ReplayResult
from buddysim.replay.schemes import BASELINE as IDEAL
from buddysim.replay.schemes import REGISTRY
from buddysim.replay.simulation import simulate as replay
from buddysim.replay.version import MODEL_VERSION
from buddysim.sweep import axis
from buddysim.sweep.axis import Axis, Value, canonical
from buddysim.sweep.contents import Stamp, content_checksum, stamp_of
from buddysim.sweep.engine_protocol import Settings, plugin_checksums, require_file
from buddysim.sweep.engines import machines
from buddysim.trace import Trace, open_trace
from buddysim.trace.format import LINE_BYTES
from buddysim.trace.partial import require_complete

NAME = "replay"
SUBJECT = "trace"
TIME = "time_ps"
BASELINE = IDEAL
AGAINST = "slowdown_vs_ideal"
KEYS_READ = ()

#: Parameters of `simulate` that have no effect on its result.
WITHOUT_EFFECT = ("progress",)
#: Kinds of plug-ins that a replay depends on: compressors, and all that is a part of the replayed machine.
PLUGIN_KINDS = ("compressor", *(kind for kind, home in HOMES.items() if home.startswith("buddysim.replay.")))

#: Axes that a scheme without targets, or without sizes, never reads; such a point has their defaults.
_OF_TARGETS = ("targets", "threshold", "profile_from", "profile_until_launch")
_OF_SIZES = ("compressor", "seed", "size_distribution")

_PROCESS_BYTES = 200 * 2**20
_BYTES_PER_ENTRY = 4
_MAX_OPEN = 4
_open: OrderedDict[tuple[str, Stamp], Trace] = OrderedDict()


#: Readers of the values of options that are more than their type.
_READERS: dict[str, axis.Reader] = {
    "machine": machines.machine_name,
    "kernels": axis.kernels,
    "compute_gap_scale": axis.fraction,
}
_AXES = {name: axis.option_axis(option, _READERS.get(name)) for name, option in field_options(ReplayRequest).items()}
_AXES["compute_gap_scale"] = replace(_AXES["compute_gap_scale"], default=str(ReplayRequest.compute_gap_scale))


def model_version() -> int:
    return MODEL_VERSION


def axes() -> dict[str, Axis]:
    return dict(_AXES)


def checked(settings: Settings, names: Iterable[str]) -> None:
    """Refuse wrong values of these axes."""
    names = list(names)
    for name in names:
        if name == "scheme":
            REGISTRY.find(str(settings["scheme"]))
        elif _AXES[name].file and settings.get(name) is not None:
            require_file(str(settings[name]), name)
            if name != "targets":
                check_complete(str(settings[name]), settings)
        elif name == "compute_gap_scale":
            exact_compute_gap_scale(Fraction(str(settings[name])))
    if not {*names} & {"threshold", "compressor", "seed", "size_distribution", "profile_until_launch"}:
        return
    ProfileOptions(
        threshold=settings.get("threshold", ProfileOptions.threshold),  # type: ignore[arg-type]
        compressor=str(settings.get("compressor", ProfileOptions.compressor)),
        seed=settings.get("seed", ProfileOptions.seed),  # type: ignore[arg-type]
        size_distribution=str(settings.get("size_distribution", ProfileOptions.size_distribution)),
        profile_until_launch=settings.get("profile_until_launch"),  # type: ignore[arg-type]
    )


def normalised(settings: Settings) -> dict[str, Value]:
    """The settings with all defaults; what the scheme never reads has its default too, so that it is simulated once."""
    full: dict[str, Value] = {name: each.default for name, each in _AXES.items()}
    full |= {name: value for name, value in settings.items() if value is not None}
    scheme = REGISTRY.find(str(full["scheme"]))
    if full["sensitivity"] == "none":
        unread = (() if scheme.uses_targets else _OF_TARGETS) + (
            () if scheme.uses_sizes or scheme.uses_targets else _OF_SIZES
        )
        full |= {name: _AXES[name].default for name in unread}
    return full


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
    for file, checksum in plugin_checksums(PLUGIN_KINDS).items():
        texts[f"plugin:{file}"] = checksum
    return texts


def machine_identity(settings: Settings) -> str:
    return machines.checksum(Machine, _machine_name(settings), machines.overrides_of(settings))


def check_machine(settings: Settings) -> None:
    _machine(settings)


def columns(settings: Settings) -> dict[str, Value]:
    """See `Engine.columns`."""
    full, machine = normalised(settings), _machine(settings)
    texts: dict[str, Value] = {name: full[name] for name in _AXES if name != "machine"}
    texts |= {"machine": machine.name, "compute_gap_scale": float(Fraction(str(full["compute_gap_scale"])))}
    numbers = machines.in_base_units(machine, machine.clocks)
    return texts | {key: value for key, value in numbers.items() if "." in key and not key.startswith("training.")}


def result_columns(settings: Settings, result: Mapping[str, Any]) -> dict[str, Value]:
    """Say whether the entry sizes were captured or are synthetic; None for a scheme that uses no sizes."""
    scheme = REGISTRY.find(str(normalised(settings)["scheme"]))
    if not scheme.uses_sizes:
        return {"sizes": None}
    return {"sizes": "synthetic" if result["sizes.synthetic_fraction"] else "captured"}


def simulate(settings: Settings) -> ReplayResult:
    """See `Engine.simulate`; traces stay open for the points to come."""
    full = normalised(settings)
    arguments: dict[str, Any] = {name: full[name] for name in _AXES}
    arguments["trace"] = opened(str(full["trace"]))
    if full["profile_from"] is not None:
        arguments["profile_from"] = opened(str(full["profile_from"]))
    arguments["machine"] = _machine(settings)
    arguments["compute_gap_scale"] = Fraction(str(full["compute_gap_scale"]))
    if full["kernels"] is not None:
        arguments["kernels"] = slice(*parse_range(str(full["kernels"]), "kernel", "3:7"))
    return replay(**arguments)


def memory_bytes(settings: Settings) -> int:
    """A process with the engine, and a few bytes for each memory-entry that the trace allocates."""
    trace = opened(str(settings["trace"]))
    entries = sum(allocation.bytes // LINE_BYTES + 1 for allocation in trace.allocations)
    return _PROCESS_BYTES + _BYTES_PER_ENTRY * entries


def _machine_name(settings: Settings) -> str:
    return str(settings.get("machine") or _AXES["machine"].default)


def _machine(settings: Settings) -> Machine:
    return machines.changed_machine(Machine, _machine_name(settings), machines.overrides_of(settings))


def check_complete(path: str, settings: Settings) -> None:
    """Refuse a trace file whose end is missing, but for points with `partial`; others report an unreadable file."""
    with suppress(TraceFileError):
        require_complete(opened(path), bool(settings.get("partial", False)))


def opened(path: str) -> Trace:
    """The trace, opened once for this process; its pages are the page cache's, which all processes share."""
    key = path, stamp_of(path)
    if key not in _open:
        _open[key] = open_trace(path)
        while len(_open) > _MAX_OPEN:
            _open.popitem(last=False)[1].close()
    _open.move_to_end(key)
    return _open[key]
