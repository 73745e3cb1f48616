"""Differences between two results, machines, traces or studies: of their settings, and of their values."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.saved_results import read_results
from buddysim.base.textfile import parse_toml, read_text
from buddysim.machine import Machine
from buddysim.machine.presets import every_preset, training_presets
from buddysim.machine.training import TrainingMachine
from buddysim.sweep.engines.machines import in_base_units
from buddysim.sweep.plan import make_plan
from buddysim.sweep.store import Store
from buddysim.sweep.stored_result import StoredResult
from buddysim.sweep.study import StudyReader
from buddysim.sweep.study_file import read_study
from buddysim.trace import open_trace

LARGEST_FILE = 2**28
_MIN_DIGITS = 4
#: Columns of rows about files and processes.
_ABOUT = ("key", "settings_hash", "baseline", "machine_checksum", "content", "seconds", "peak_rss_bytes", "sources")

Values = dict[str, Any]


@dataclass(frozen=True)
class ComparedItem:
    """One side of a comparison.

    Attributes
    ----------
    kind : ``result``, ``machine``, ``trace`` or ``study``
    label : its name on a screen
    settings : requested settings by name
    values : counters, machine keys or facts of a trace by name
    points : settings and values of each result of a study
    texts : values as a machine file has them, by name
    """

    kind: str
    label: str
    settings: Values = field(default_factory=dict)
    values: Values = field(default_factory=dict)
    points: list[tuple[Values, Values]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    """A value that differs; None on the side that has none."""

    name: str
    first: Any
    second: Any

    @property
    def ratio(self) -> float | None:
        """The second value over the first; None for texts and zeros."""
        both = (self.first, self.second)
        if not all(isinstance(each, int | float) and not isinstance(each, bool) and each for each in both):
            return None
        return float(self.second / self.first)


def diff(first: str | os.PathLike[str], second: str | os.PathLike[str], store: Store | None = None) -> list[Difference]:
    """Return the settings and values that differ between two results, machines or traces.

    Parameters
    ----------
    first, second : a key in the store (its first digits), ``RESULT.json``, ``RESULT.json:SCHEME``, a machine, or a
        trace; `buddysim diff` compares two study files, too
    store : the result store; None: ``BUDDYSIM_STORE``, else ``out/store``

    Raises
    ------
    BuddysimError
        a text that names none of these, two of different kinds, or a study file
    """
    store = store or Store.at(None)
    a, b = (load_item(os.fspath(text), store) for text in (first, second))
    if a.kind != b.kind or a.kind == "study":
        raise BuddysimError(f"{a.label} is a {a.kind}, {b.label} a {b.kind}: expected two results, machines or traces")
    return differences(a.settings, b.settings) + differences(a.values, b.values)


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Difference]:
    """Return the values that differ, in the order of the first item, then of the second.

    Two paths of one file are equal.
    """
    names = dict.fromkeys([*first, *second])
    every = [Difference(name, first.get(name), second.get(name)) for name in names]
    return [each for each in every if not _is_equal(each.first, each.second)]


def _is_equal(first: Any, second: Any) -> bool:
    if first == second:
        return True
    are_paths = all(isinstance(value, str) and Path(value).is_absolute() for value in (first, second))
    return are_paths and os.path.realpath(first) == os.path.realpath(second)


def pair_points(
    first: ComparedItem, second: ComparedItem
) -> tuple[list[str], list[tuple[Values, Values, Values]], int]:
    """Pair the points of two studies that have the same settings.

    Returns
    -------
    the settings in which the studies differ; for each pair its common settings and the values of both points; the
    number of points without a partner
    """
    varied = [
        name
        for name in _names(first) | _names(second)
        if _has_several_values(first, name) or _has_several_values(second, name)
    ]
    differ = [name for name in _names(first) | _names(second)
              if name not in varied and not _is_equal(_value(first, name), _value(second, name))]  # fmt: skip
    shared = sorted(varied)
    points = [{tuple(_comparable(settings.get(name)) for name in shared): values for settings, values in item.points}
              for item in (first, second)]  # fmt: skip
    pairs = [
        (dict(zip(shared, key, strict=True)), values, points[1][key])
        for key, values in points[0].items()
        if key in points[1]
    ]
    return sorted(differ), pairs, len(points[0]) + len(points[1]) - 2 * len(pairs)


def _comparable(value: Any) -> Any:
    """The value of a setting; of a path the one that links and ``..`` lead to."""
    return os.path.realpath(value) if isinstance(value, str) and Path(value).is_absolute() else value


def _names(item: ComparedItem) -> set[str]:
    return {name for settings, _ in item.points for name in settings}


def _has_several_values(item: ComparedItem, name: str) -> bool:
    return len({json.dumps(_comparable(settings.get(name))) for settings, _ in item.points}) > 1


def _value(item: ComparedItem, name: str) -> Any:
    return item.points[0][0].get(name) if item.points else None


@within_budget
def load_item(text: str, store: Store) -> ComparedItem:
    """Return the item that a user named.

    Parameters
    ----------
    text : a key in the store (its first digits), FILE.json or FILE.json:SCHEME, a machine, a trace, or a study file

    Raises
    ------
    BuddysimError
        where it is none of these
    """
    if text in every_preset():
        return _machine(text)
    file, _, scheme = text.partition(".json:") if ".json:" in text else (text, "", "")
    if file.endswith(".json") or scheme:
        return _result_file(f"{file}.json" if scheme else file, scheme)
    if text.endswith(".bin"):
        return _trace(text)
    if text.endswith(".toml"):
        content = parse_toml(read_text(text, "machine or study file", LARGEST_FILE), text)
        study = any(name in content for name in StudyReader.TABLES if name != "title")
        return _study(text, store) if study else _machine(text)
    if len(text) >= _MIN_DIGITS and set(text) <= set("0123456789abcdef"):
        return _stored(text, store)
    known = every_preset()
    raise BuddysimError(
        f"{shortened(text)}: expected a result's key in the store, RESULT.json, a machine, TRACE.bin or STUDY.toml"
        f"{hint(text, known)}"
    )


def stored_item(record: StoredResult, label: str = "") -> ComparedItem:
    """Return a stored result as an item to compare."""
    counters = {key: value for key, value in record.result.items() if isinstance(value, int | float | str)}
    settings = {key: value for key, value in record.row.items() if key not in counters and key not in _ABOUT}
    return ComparedItem("result", label or record.key[:12], settings, counters)


def _stored(digits: str, store: Store) -> ComparedItem:
    keys = sorted(key for key in store.all_keys() if key.startswith(digits))
    if len(keys) != 1:
        problem = f"{len(keys)} results begin with it: expected more digits" if keys else "no result begins with it"
        raise BuddysimError(f"{digits}: {store.folder}: {problem}")
    record = store.get(keys[0])
    if record is None:
        raise BuddysimError(f"{digits}: {store.notes[-1]}")
    return stored_item(record)


def _result_file(path: str, scheme: str) -> ComparedItem:
    content = read_results(path)
    names = list(content)
    if scheme and scheme not in content:
        raise BuddysimError(f"{path}: no scheme {shortened(scheme)}: expected one of {', '.join(names)}")
    if not scheme and len(names) > 1:
        raise BuddysimError(f"{path}: has several schemes: expected {path}:SCHEME, one of {', '.join(names)}")
    result = content[scheme or names[0]]
    provenance = result["provenance"]
    plain = (int, float, str)
    counters = {k: v for k, v in result.items() if isinstance(v, plain) and not k.startswith("speed.")}
    settings = {key: value for key, value in provenance.items() if isinstance(value, plain)}
    return ComparedItem("result", f"{Path(path).name}:{scheme or names[0]}", settings, counters)


def _machine(name: str) -> ComparedItem:
    try:
        machine: Machine | TrainingMachine = (
            TrainingMachine.load(name) if name in training_presets() else Machine.load(name)
        )
    except BuddysimError:
        machine = TrainingMachine.load(name)
    texts = {key: machine.text(key) for key in machine.dotted_keys() if "." in key}
    numbers = in_base_units(machine, machine.clocks if isinstance(machine, Machine) else {})
    return ComparedItem(
        "machine", machine.name, {}, {key: numbers.get(key, text) for key, text in texts.items()}, texts=texts
    )


def _trace(path: str) -> ComparedItem:
    with open_trace(path) as trace:
        facts: Values = {
            "tool": trace.provenance.tool,
            "source": trace.provenance.source,
            "kernels": len(trace.kernels),
            "kernel functions": len({kernel.name for kernel in trace.kernels}),
            "thread blocks": sum(kernel.n_blocks for kernel in trace.kernels),
            "warp instructions": sum(kernel.warp_instructions for kernel in trace.kernels),
            "memory instructions": sum(kernel.memory_instructions for kernel in trace.kernels),
            "line accesses": sum(kernel.line_accesses for kernel in trace.kernels),
            "allocations": len(trace.allocations),
            "bytes allocated": sum(allocation.bytes for allocation in trace.allocations),
            "snapshots": len(trace.snapshots),
            "file bytes": Path(path).stat().st_size,
            "content": trace.fingerprint[:16],
        }
        facts |= {f"assumed: {key}": text for key, text in trace.provenance.assumptions.items()}
    return ComparedItem("trace", os.path.basename(path), {}, facts)  # noqa: PTH119 - a text for the screen


def _study(path: str, store: Store) -> ComparedItem:
    plan = make_plan(read_study(path), store)
    points = []
    for key, point in plan.points.items():
        record = store.get(key) if key not in plan.points.baselines else None
        if record is not None:
            item = stored_item(record)
            settings = {name: item.settings.get(name, value) for name, value in point.settings.items()}
            points.append((settings, item.values))
    if not points:
        raise BuddysimError(f"{path}: none of its points has a result in {store.folder}: run sweep {path} first")
    return ComparedItem("study", Path(path).name, {}, {}, points)
