"""Machines of points: loaded once for each file, changed once for each combination of keys."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any, TypeVar, cast

from buddysim.base import plugins
from buddysim.base.errors import BuddysimError
from buddysim.machine.machine_file import MachineFile
from buddysim.machine.presets import every_preset, is_path
from buddysim.machine.section import figures
from buddysim.machine.units import Frequency, plain_number
from buddysim.sweep.axis import Value, file_value
from buddysim.sweep.contents import stamp_of

M = TypeVar("M", bound=MachineFile)
Overrides = tuple[tuple[str, Value], ...]


def machine_name(raw: object) -> str:
    """Return a preset's name, or the absolute path of a machine file."""
    if not isinstance(raw, str) or not raw.strip():
        raise ValueError("expected the name of a machine, or a machine file ending in .toml")
    name = raw.strip()
    return file_value(name) if name not in every_preset() and is_path(name) else name


def overrides_of(settings: Mapping[str, Value]) -> Overrides:
    """The settings that are keys of machines."""
    return tuple(sorted((key, value) for key, value in settings.items() if "." in key))


def base_machine(kind: type[M], name: str) -> M:
    """The machine of a name or of a file, loaded again when the file has changed."""
    try:
        machine: M = _base(kind, name, stamp_of(name) if name.startswith(os.sep) else None, plugins.modules())
    except BuddysimError as error:
        raise BuddysimError(f"machine: {error}") from None
    return machine


def changed_machine(kind: type[M], name: str, overrides: Overrides) -> M:
    """The machine with some keys changed."""
    base = base_machine(kind, name)
    machine: Any = _changed(_cache_key(base), _CachedMachine(base), overrides, plugins.modules())
    return cast(M, machine)


def checksum(kind: type[M], name: str, overrides: Overrides) -> str:
    """The checksum of `changed_machine`, which isn't made."""
    base = base_machine(kind, name)
    return _checksum(_cache_key(base), _CachedMachine(base), overrides, plugins.modules())


def canonical_value(kind: type[M], name: str, key: str, value: object) -> Any:
    """Return a text for the value of a machine key, equal for equal values."""
    base = base_machine(kind, name)
    try:
        return _canonical(_cache_key(base), _CachedMachine(base), key, value, plugins.modules())
    except TypeError:  # a list can't be remembered, and is wrong anyway
        return base.canonical(key, value)


def in_base_units(machine: MachineFile, clocks: Mapping[str, Frequency]) -> dict[str, Value]:
    """The figures of a machine as plain numbers, by dotted key: bytes, ps, Hz, bytes per second."""
    return {key: plain_number(value, clocks) for key, value in figures(machine._parts())}


class _CachedMachine:
    """A machine as part of a cache key, where its checksum represents it."""

    def __init__(self, machine: MachineFile) -> None:
        self.machine = machine

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _CachedMachine) and type(self.machine) is type(other.machine)

    def __hash__(self) -> int:
        return hash(type(self.machine))


def _cache_key(machine: MachineFile) -> str:
    """Equal machines of different names are two: results show the name."""
    return f"{machine.checksum} {machine.name}"


#: Part of the keys below, as plug-ins may add sections to machines.
PluginModules = tuple[ModuleType, ...]


@lru_cache(256)
def _base(kind: type[M], name: str, stamp: object, plugin_modules: PluginModules) -> M:
    return kind.load(name)  # type: ignore[attr-defined, no-any-return]


@lru_cache(1024)
def _changed(of: str, cached: _CachedMachine, overrides: Overrides, plugin_modules: PluginModules) -> MachineFile:
    return cached.machine.with_overrides(dict(overrides)) if overrides else cached.machine


@lru_cache(65536)
def _checksum(of: str, cached: _CachedMachine, overrides: Overrides, plugin_modules: PluginModules) -> str:
    return cached.machine.checksum_with(dict(overrides))


@lru_cache(65536)
def _canonical(of: str, cached: _CachedMachine, key: str, value: Any, plugin_modules: PluginModules) -> Any:
    return cached.machine.canonical(key, value)
