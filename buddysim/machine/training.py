"""Machines for the training simulator: the `[training]` table of a machine file, read, checked and overridden.

Some machine files have this table beside the description that a replay needs; others have it alone.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import resources
from typing import Any

from pydantic import Field, ValidationError

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.textfile import parse_toml, toml_text
from buddysim.machine import load
from buddysim.machine.section import Section
from buddysim.machine.training_table import LinkRate, Training
from buddysim.machine.units import Bandwidth, Frequency, Time

_LINKS = resources.files("buddysim.machine") / "links.toml"
_PART = "training"


class TrainingMachine(Section):
    """A GPU in training, with the source of each of its figures.

    ``TrainingMachine.load("titan-x")``, ``TrainingMachine.load("mine.toml")``. Rates are plain integers (bytes or
    operations per second), times integer picoseconds. `links` holds the links that every machine has and its own.
    """

    name: str
    description: str = "-"
    training: Training
    sources: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def names(cls) -> list[str]:
        """The machines that come with buddysim, in alphabetical order."""
        both = [name for name in load.Machine.presets() if _PART in load.preset(name)]
        return sorted([*both, *load.training_presets()])

    @classmethod
    def load(cls, machine: str | os.PathLike[str] | TrainingMachine) -> TrainingMachine:
        """A machine that comes with buddysim by its name, or a machine file by its path."""
        if isinstance(machine, TrainingMachine):
            return machine
        name = os.fspath(machine)
        if name in load.every_preset():
            content = load.preset(name)
        elif load.is_path(name):
            content = load.file_content(name)
            load.check_sections(content, name)
        else:
            raise BuddysimError(
                f"{shortened(name)} is not a machine: expected one of {', '.join(cls.names())}, "
                f"or a machine file ending in .toml{hint(name, cls.names())}"
            )
        if _PART not in content:
            raise BuddysimError(
                f"{name}: no [{_PART}] table, so it can't be used for training: expected one of "
                f"{', '.join(cls.names())}, or a machine file with that table"
            )
        return cls._checked(_with_links(_own_part(content)), name)

    def with_overrides(self, overrides: Mapping[str, object], where: str | None = None) -> TrainingMachine:
        """The same machine with some keys changed: ``{"training.link": "pcie4", "training.memory": "24 GiB"}``."""
        where = where or self.name
        return type(self)._checked(load.overridden(self.to_dict(), overrides, self.dotted_keys(), where), where)

    def dotted_keys(self) -> list[str]:
        """Every dotted key that can be overridden, those of the links after the others."""
        return [key for key, _ in load.flat({_PART: self.training.model_dump()})]

    def text(self, key: str) -> str:
        """The value of a dotted key as a machine file would say it."""
        return str(dict(load.flat(self.to_dict()))[key])

    def source(self, key: str) -> str:
        """Where the figure of a dotted key comes from."""
        return self.sources.get(key, "not named by the machine file")

    def to_dict(self) -> dict[str, Any]:
        """The machine as a machine file has it, every default filled in."""
        return copy.deepcopy(self.model_dump())

    def to_toml(self) -> str:
        """The machine as the text of a machine file."""
        return toml_text(self.to_dict())

    @cached_property
    def checksum(self) -> str:
        """SHA-256 over every figure that a simulation may depend on, in hex; however the file wrote it."""
        figures: dict[str, object] = {}
        for key in self.dotted_keys():
            found: Any = self
            for name in key.split("."):
                found = found[name] if isinstance(found, dict) else getattr(found, name)
            figures[key] = found.canonical() if isinstance(found, Time | Frequency | Bandwidth) else found
        return hashlib.sha256(json.dumps(figures, sort_keys=True).encode()).hexdigest()

    @property
    def fp32_flops(self) -> int:
        """Peak single-precision operations per second."""
        return self.training.fp32

    @property
    def sms(self) -> int:
        """Streaming multiprocessors."""
        return self.training.sms

    @property
    def clock_hz(self) -> int:
        """Clock at which the peak rate is reached, in hertz."""
        return self.training.clock.hz

    @property
    def dram_bytes_per_s(self) -> int:
        """Peak bandwidth of device memory, in bytes per second."""
        return int(self.training.dram_bandwidth.bytes_per_s({}))

    @property
    def memory_bytes(self) -> int:
        """Device memory in all, in bytes."""
        return self.training.memory

    @property
    def launch_ps(self) -> int:
        """What each kernel costs beside its work, in picoseconds."""
        return round(self.training.launch.picoseconds({}))

    @property
    def library(self) -> str:
        """Library version whose calibration is the default."""
        return self.training.library

    @property
    def link(self) -> str:
        """Name of the link in use."""
        return self.training.link

    @property
    def links(self) -> dict[str, LinkRate]:
        """Every link by its name."""
        return self.training.links

    @property
    def link_rate(self) -> LinkRate:
        """The link in use."""
        return self.training.links[self.training.link]

    @property
    def host_memory_bytes(self) -> int:
        """Host memory in all, in bytes."""
        return self.training.host_memory

    @property
    def host_pinned_bytes(self) -> int:
        """Most host memory that can be pinned, in bytes."""
        return self.training.host_pinned

    @classmethod
    def _checked(cls, content: dict[str, Any], where: str) -> TrainingMachine:
        try:
            machine = cls.model_validate(content)
        except ValidationError as error:
            problems = load.problems(error.errors(include_url=False), _known())
            raise BuddysimError(f"{where}: {'; '.join(problems)}") from None
        if machine.link not in machine.links:
            near = hint(machine.link, machine.links)
            raise BuddysimError(
                f"{where}: {_PART}.link: {shortened(machine.link)} is not a link: expected one of "
                f"{', '.join(machine.links)}{near}"
            )
        if machine.host_pinned_bytes > machine.host_memory_bytes:
            raise BuddysimError(
                f"{where}: {_PART}.host_pinned: {machine.text('training.host_pinned')} is more than "
                f"{_PART}.host_memory, {machine.text('training.host_memory')}"
            )
        known = machine.dotted_keys()
        for key in machine.sources:
            if key not in known:
                raise BuddysimError(f"{where}: sources: {load.unknown(key, known)}")
        return machine


def shared_links() -> dict[str, dict[str, str]]:
    """The links that every machine has, as `links.toml` names them."""
    found: dict[str, dict[str, str]] = parse_toml(_LINKS.read_text(encoding="utf-8"))
    return found


def _known() -> list[str]:
    return [f"{_PART}.{name}" for name in Training.model_fields]


def _own_part(content: Mapping[str, Any]) -> dict[str, Any]:
    """What a machine file says of training: its table and the sources of that."""
    sources = dict(load.flat(content.get("sources", {})))
    own = {key: source for key, source in sources.items() if key.startswith(f"{_PART}.")}
    kept = {key: content[key] for key in ("name", "description", _PART) if key in content}
    return {**kept, "sources": own}


def _with_links(content: dict[str, Any]) -> dict[str, Any]:
    """The same with the links that every machine has; a machine's own of the same name counts."""
    table = content[_PART]
    if not isinstance(table, Mapping) or not isinstance(table.get("links", {}), Mapping):
        return content
    links: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, given in shared_links().items():
        links[name] = {key: value for key, value in given.items() if key in LinkRate.model_fields}
        sources |= dict(_link_sources(name, given))
    links |= table.get("links", {})
    return {**content, _PART: {**table, "links": links}, "sources": {**sources, **content["sources"]}}


def _link_sources(name: str, link: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key in LinkRate.model_fields:
        yield f"{_PART}.links.{name}.{key}", link["latency_source"] if key == "latency" else link["source"]
