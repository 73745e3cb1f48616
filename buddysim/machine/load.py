"""Machine files: reading, checking, overriding, writing out."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, PrivateAttr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from buddysim.base import hints
from buddysim.base.errors import BuddysimError
from buddysim.base.textfile import parse_toml, read_text, toml_text
from buddysim.machine.model import Description
from buddysim.machine.scheme_sections import comes_with_buddysim, scheme_sections
from buddysim.machine.section import Section, field_keys
from buddysim.machine.training_table import Training
from buddysim.machine.units import Bandwidth, Frequency, Time

LARGEST_FILE = 2**20
_PRESETS = resources.files("buddysim.machine") / "presets"
_TRAINING_PRESETS = _PRESETS / "training"
_NOT_SIMULATED = ("name", "description")


class Machine(Description):
    """A machine to simulate, with the source of each of its figures.

    ``Machine.load("p100-nvlink2")``, ``Machine.load("mine.toml")``; sections are attributes (``m.l2.size``), those of
    replay schemes too (``m.um.page``); times and bandwidths are resolved by `ps` and `bytes_per_s`.
    """

    sources: dict[str, str] = Field(default_factory=dict)
    #: Sections of replay schemes that differ from their defaults, by name.
    _schemes: dict[str, Section] = PrivateAttr(default_factory=dict)

    if not TYPE_CHECKING:  # mypy would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            """The section of a replay scheme."""
            section = None if name.startswith("_") else scheme_sections().get(name)
            if section is None:
                return super().__getattr__(name)
            return self._schemes.get(name) or section()

    @classmethod
    def presets(cls) -> list[str]:
        """The names of the machines that come with buddysim, in alphabetical order."""
        return _named_in(_PRESETS)

    @classmethod
    def load(cls, machine: str | os.PathLike[str]) -> Machine:
        """A preset by its name, or a machine file by its path."""
        name = os.fspath(machine)
        if name in cls.presets():
            return cls._checked(preset(name), name)
        if name in training_presets():
            raise BuddysimError(
                f"{name} describes a GPU for training only and can't replay a trace: expected one of "
                f"{', '.join(cls.presets())}, or a machine file ending in .toml{hints.hint(name, cls.presets())}"
            )
        if not is_path(name):
            near = hints.hint(name, cls.presets())
            raise BuddysimError(
                f"{hints.shortened(name)} is not a machine: expected one of {', '.join(cls.presets())}, "
                f"or a machine file ending in .toml{near}"
            )
        return cls._checked(file_content(name), name)

    def with_overrides(self, overrides: Mapping[str, object], where: str | None = None) -> Machine:
        """The same machine with some keys changed: ``{"l2.size": "6 MiB", "link.bandwidth": "50 GB/s"}``."""
        where = where or self.name
        return type(self)._checked(overridden(self._content(), overrides, self._keys(), where), where)

    def source(self, key: str) -> str:
        """Where the figure of a dotted key comes from."""
        return self.sources.get(key, "not named by the machine file")

    def value(self, key: str) -> Any:
        """The value of a dotted key: an int, bool, str, float, or a quantity with its unit."""
        found: Any = self
        for name in key.split("."):
            found = getattr(found, name)
        return found

    def text(self, key: str) -> str:
        """The value of a dotted key as a machine file would say it."""
        found: Any = self._content()
        for name in key.split("."):
            found = found[name]
        return str(found).lower() if isinstance(found, bool) else str(found)

    def to_dict(self) -> dict[str, Any]:
        """The whole machine as a machine file has it, every default filled in."""
        return self._content()

    def to_toml(self) -> str:
        """The whole machine as the text of a machine file."""
        return toml_text(self._content())

    def _content(self) -> dict[str, Any]:
        content = self.model_dump(exclude_none=True)
        schemes = {name: getattr(self, name).model_dump() for name in scheme_sections()}
        last: dict[str, Any] = {name: content.pop(name) for name in ("training", "sources") if name in content}
        return {**content, **schemes, **last}

    def training_keys(self) -> list[str]:
        """Every dotted key that a replay does not depend on, only a simulated training; none in most machines."""
        table = self.training.model_dump() if self.training is not None else {}
        return [f"training.{key}" for key, _ in flat(table)]

    def _keys(self) -> list[str]:
        return [*(key for key, _ in keys()), *self.training_keys()]

    @cached_property
    def checksum(self) -> str:
        """SHA-256 over every figure that a run depends on, in hex; however the file wrote it.

        The section of a plug-in's scheme counts only where it differs from its defaults: loading a plug-in that a run
        does not use changes no checksum.
        """
        unused = [
            f"{name}."
            for name, section in scheme_sections().items()
            if name not in self._schemes and not comes_with_buddysim(section)
        ]
        figures: dict[str, object] = {}
        for key, _ in keys():
            if key not in _NOT_SIMULATED and not key.startswith(tuple(unused)):
                value = self.value(key)
                quantity = isinstance(value, Time | Frequency | Bandwidth)
                figures[key] = value.canonical() if quantity else value
        return hashlib.sha256(json.dumps(figures, sort_keys=True).encode()).hexdigest()

    @classmethod
    def _checked(cls, content: Mapping[str, Any], where: str) -> Machine:
        if isinstance(content.get("sources"), Mapping):
            content = {**content, "sources": dict(flat(content["sources"]))}
        of_schemes = scheme_sections()
        wrong: list[ErrorDetails] = []
        try:
            machine = cls.model_validate({name: value for name, value in content.items() if name not in of_schemes})
        except ValidationError as error:
            wrong += error.errors(include_url=False)
        schemes: dict[str, Section] = {}
        for name, section in of_schemes.items():
            try:
                schemes[name] = section.model_validate(content.get(name, {}))
            except ValidationError as error:
                for problem in error.errors(include_url=False):
                    wrong.append({**problem, "loc": (name, *problem["loc"])})
        if wrong:
            raise BuddysimError(f"{where}: {'; '.join(problems(wrong, _every_key()))}")
        machine._schemes.update((name, given) for name, given in schemes.items() if given != of_schemes[name]())
        known = machine._keys()
        for key in machine.sources:
            if key not in known and not key.startswith("training.links."):
                raise BuddysimError(f"{where}: sources: {unknown(key, known)}")
        return machine


def preset(name: str) -> dict[str, Any]:
    """The content of the file of a machine that comes with buddysim."""
    folder = _TRAINING_PRESETS if name in training_presets() else _PRESETS
    return parse_toml((folder / f"{name}.toml").read_text(encoding="utf-8"), name)


def training_presets() -> list[str]:
    """The names of the machines that come with buddysim and are for training only."""
    return _named_in(_TRAINING_PRESETS)


def every_preset() -> list[str]:
    """The names of all machines that come with buddysim."""
    return sorted([*_named_in(_PRESETS), *_named_in(_TRAINING_PRESETS)])


def _named_in(folder: Traversable) -> list[str]:
    names = (entry.name for entry in folder.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def is_path(name: str) -> bool:
    """Whether what a user gave is meant as a file, not as the name of a machine."""
    return name.endswith(".toml") or os.sep in name or Path(name).exists()


def file_content(name: str) -> dict[str, Any]:
    """The content of a machine file, on top of its base."""
    return _based(parse_toml(read_text(name, "machine file", LARGEST_FILE), name), name)


def check_sections(content: Mapping[str, Any], where: str) -> None:
    """Refuses a section that no machine file has."""
    known = [*Machine.model_fields, *scheme_sections(), "base"]
    for key in content:
        if key not in known:
            raise BuddysimError(f"{where}: {unknown(key, known)}")


def keys() -> Iterator[tuple[str, FieldInfo]]:
    """Every dotted key that a replay depends on, with its field, in the order of a file."""
    yield from ((key, field) for key, field in field_keys(Description) if key != "training")
    for name, section in scheme_sections().items():
        yield from field_keys(section, f"{name}.")


def _every_key() -> list[str]:
    return [*(key for key, _ in keys()), *(f"training.{name}" for name in Training.model_fields)]


def problems(found: Sequence[ErrorDetails], known: list[str], most: int = 5) -> Iterator[str]:
    """What pydantic found wrong, as parts of one line."""
    sections = {key.rpartition(".")[0] for key in known} - {""}
    for problem in found[:most]:
        path = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            yield unknown(path, [*known, *sections])
        elif problem["type"] == "missing":
            yield f"{path}: {'this section' if path in sections else 'this key'} is missing"
        elif problem["type"] in ("model_type", "model_attributes_type", "dict_type"):
            yield f"{path}: {hints.shortened(problem['input'])} is not a section of keys"
        else:
            text = str(problem.get("ctx", {}).get("error", problem["msg"]))
            yield f"{path}: {text}" if path else text
    if len(found) > most:
        yield f"and {len(found) - most} more"


def overridden(
    content: dict[str, Any], overrides: Mapping[str, object], known: Iterable[str], where: str
) -> dict[str, Any]:
    """A machine's content with the values of some of the `known` dotted keys changed, and that said in its sources."""
    known = list(known)
    for key, value in overrides.items():
        if key not in known:
            raise BuddysimError(f"{where}: {unknown(key, known)}")
        *sections, last = key.split(".")
        section = content
        for name in sections:
            section = section[name]
        content["sources"][key] = f"given for this run (was: {section[last]})"
        section[last] = value
    return content


def unknown(key: str, known: Iterable[str]) -> str:
    """That a key is unknown, with the one that was likely meant."""
    inside = [name for name in known if name.startswith(f"{key}.")]
    if inside:
        return f"{key}: a section, not a key: expected one of {', '.join(inside)}"
    return f"{hints.shortened(key)[1:-1]}: unknown key{hints.hint(key, known)}"


def _based(content: dict[str, Any], where: str) -> dict[str, Any]:
    """The content of a file on top of the preset that it names as its ``base``."""
    if "base" not in content:
        return content
    base = content.pop("base")
    if base not in every_preset():
        near = hints.hint(str(base), every_preset())
        raise BuddysimError(
            f"{where}: base: {hints.shortened(base)} is not a preset: expected one of {', '.join(every_preset())}{near}"
        )
    below = preset(base) if base in training_presets() else Machine.load(base).to_dict()
    sources = content.pop("sources", {})
    for key, _ in flat(content):
        below["sources"].pop(key, None)
    merged = _merged(below, content)
    merged["sources"] = {**below["sources"], **dict(flat(sources))} if isinstance(sources, Mapping) else sources
    return merged


def flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested sections as dotted keys with their values."""
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            merged[name] = _merged(under, value)
        else:
            merged[name] = value
    return merged
