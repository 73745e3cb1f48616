"""The interface of an engine for sweeps: its axes, the inputs that determine a result, and the result."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, Protocol

from buddysim.base import plugins
from buddysim.base.errors import BuddysimError
from buddysim.base.kinds import registry
from buddysim.base.paths import is_file
from buddysim.base.plugin_modules import PACKAGE, source_of, text_of
from buddysim.sweep.axis import Axis, Value
from buddysim.sweep.contents import content_checksum

Settings = Mapping[str, Value]
_SOURCES = (".py", ".pyx", ".pxd", ".h", ".toml")


class StorableResult(Protocol):
    """The stored result of a point: a `SchemeResult`, or a finding."""

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""


class SweepEngine(Protocol):
    """A module of `buddysim.sweep.engines`."""

    #: Its name in studies and results.
    NAME: str
    #: The axis that names the simulated subject: a study without it is not one of this engine.
    SUBJECT: str
    #: The counter that says how long it took in simulated time.
    TIME: str
    #: The scheme that times are normalized to, and the column of that ratio; None if results have it themselves.
    BASELINE: str | None
    AGAINST: str | None
    #: Keys of machines that `identity` reads.
    KEYS_READ: tuple[str, ...]

    def model_version(self) -> int:
        """Version of the engine's model."""

    def axes(self) -> dict[str, Axis]:
        """Parameters of its `simulate` that a study can vary, by name, in addition to machine keys."""

    def checked(self, settings: Settings, names: Iterable[str]) -> None:
        """Refuse wrong values of these axes, which a run would refuse later."""

    def machine_value(self, settings: Settings, key: str, value: object) -> Any:
        """Return a text for the value of a machine key, equal for equal values."""

    def identity(self, settings: Settings) -> dict[str, str]:
        """Return all inputs of the result but the machine, as texts that are equal for equal values.

        They depend on the settings that are no machine keys, and on those of `KEYS_READ`; files count by content.
        """

    def machine_identity(self, settings: Settings) -> str:
        """The checksum of the machine."""

    def check_machine(self, settings: Settings) -> None:
        """Refuses a machine whose parts don't fit together."""

    def columns(self, settings: Settings) -> dict[str, Value]:
        """Columns of a row in addition to the counters: settings and machine keys as numbers, in base units."""

    def result_columns(self, settings: Settings, result: Mapping[str, Any]) -> dict[str, Value]:
        """Return columns of a row that the result decides, in addition to its counters."""

    def simulate(self, settings: Settings) -> StorableResult:
        """The result of a point."""

    def memory_bytes(self, settings: Settings) -> int:
        """Upper estimate of the memory that a process needs for a point: where nothing was measured."""


def plugin_checksums(kinds: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of the sources of each plug-in that defines members of these kinds, by file name.

    A plug-in of an installed package counts with every source of its folder, since it may import them.
    """
    registries = [registry(kind) for kind in kinds]
    return {
        source_of(module).name: _source_checksum(module)
        for module in plugins.modules()
        if any(each.adopt(module) for each in registries)
    }


def _source_checksum(module: ModuleType) -> str:
    source, text = source_of(module), text_of(module)
    if text is not None:
        return hashlib.sha256(text).hexdigest()
    if module.__name__.startswith(f"{PACKAGE}.") or not module.__package__:
        return content_checksum(str(source))
    digest = hashlib.sha256()
    for path in sorted(source.parent.rglob("*")):
        if path.suffix in _SOURCES and path.is_file():
            line = f"{path.relative_to(source.parent)} {content_checksum(str(path))}\n"
            digest.update(line.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def require_file(path: str, what: str) -> None:
    """A BuddysimError where there is no such file."""
    if not is_file(path):
        raise BuddysimError(f"{path}: {what} not found: expected a file")
