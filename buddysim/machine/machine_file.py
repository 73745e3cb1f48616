"""The base of both kinds of machine: values by dotted key, each with its source, from a machine file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from types import ModuleType
from typing import Annotated, Any, Self

from pydantic import Field, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from buddysim.base import plugins
from buddysim.base.dotted import flat, unknown_key
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.parsers.typed import InvalidContentError, value_of
from buddysim.base.textfile import toml_text
from buddysim.machine import fields
from buddysim.machine.section import Section, canonical_figures, figures, parse_section

MAX_PROBLEMS = 5


class MachineFile(Section):
    """A machine that a file describes; a subclass has its sections as fields and names them in `_parts`."""

    name: Annotated[str, fields.text(80)] = Field(description="name of the machine")
    description: Annotated[str, fields.text(1000)] = Field(
        default="-", description="hardware that the machine describes; -: not given"
    )
    sources: dict[str, str] = Field(default_factory=dict, description="source of each figure, by dotted key")

    def dotted_keys(self) -> list[str]:
        """Every dotted key that has a value and can be overridden, in the order of a file."""
        return [key for key, _ in figures(self._parts())]

    def value(self, key: str) -> Any:
        """Return the value of a dotted key: an int, bool, str, float, or a quantity with its unit."""
        return self._lookup(dict(figures(self._parts())), key)

    def text(self, key: str) -> str:
        """Return the value of a dotted key as a machine file has it."""
        return str(self._lookup(self.texts(), key))

    def texts(self) -> dict[str, str]:
        """Return every value as a machine file has it, by dotted key."""
        values = flat(self.to_dict())
        return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in values}

    def source(self, key: str) -> str:
        """Return the source of a dotted key's value: what the file names, or that of the key's default."""
        if key in self.sources:
            return self.sources[key]
        return (
            f"default: {fields.default_source(self._field(key))}"
            if self.is_default(key)
            else "not named by the machine file"
        )

    def is_default(self, key: str) -> bool:
        """Whether a dotted key has its default, and the file names no source of its own."""
        field = None if key in self.sources else self._field(key)
        if field is None or not fields.default_source(field):
            return False
        default = canonical_figures({key: field.get_default(call_default_factory=True)})
        return bool(default[key] == self._canonical_figures[key])

    def with_overrides(
        self, overrides: Mapping[str, object], where: str | None = None, source: str | None = None
    ) -> Self:
        """Return the machine with some keys changed, as its sources say.

        Parameters
        ----------
        overrides : values by dotted key: ``{"l2.size": "6 MiB", "link.bandwidth": "50 GB/s"}``
        where : beginning of an error; None: the machine's name
        source : source of the new values; None: a setting of this run
        """
        where = where or self.name
        content, keys = self.to_dict(), self.dotted_keys()
        for key, value in overrides.items():
            if key not in keys:
                raise BuddysimError(f"{where}: {unknown_key(key, keys)}")
            *sections, last = key.split(".")
            table = content
            for section in sections:
                table = table[section]
            content["sources"][key] = source or f"given for this run (was: {table[last]})"
            table[last] = value
        return self._checked(content, where)

    def renamed(self, name: str, description: str) -> Self:
        """Return the machine with another name."""
        return self._checked({**self.to_dict(), "name": name, "description": description}, name)

    def to_dict(self) -> dict[str, Any]:
        """Return the machine as nested tables, every default filled in."""
        parts = {"name": self.name, "description": self.description, **self._parts()}
        content = {name: _plain(part) for name, part in parts.items() if part is not None}
        return {**content, "sources": dict(self.sources)}

    def to_toml(self) -> str:
        """Return the text of a machine file with every key."""
        return toml_text(self.to_dict())

    @cached_property
    def checksum(self) -> str:
        """SHA-256 over every figure that a simulation depends on, in hex; however the file wrote it."""
        return self.checksum_with({})

    def checksum_with(self, overrides: Mapping[str, object]) -> str:
        """The checksum of ``with_overrides(overrides)``, a hundred times faster: the machine itself is not made.

        Raises
        ------
        BuddysimError
            an unknown key, or a value that is wrong by itself; whether the parts fit together is not checked
        """
        changed = {key: self.canonical(key, value) for key, value in overrides.items()}
        counted = self._counted({**self._canonical_figures, **changed})
        return hashlib.sha256(json.dumps(counted, sort_keys=True).encode()).hexdigest()

    def canonical(self, key: str, value: object) -> Any:
        """Return a text for a dotted key's value, equal for equal values in any unit.

        Raises
        ------
        BuddysimError
            an unknown key, or a wrong value
        """
        if key not in self._canonical_figures:
            raise BuddysimError(f"{self.name}: {unknown_key(key, self.dotted_keys())}")
        try:
            parsed = value_of(_reader(type(self), key, plugins.modules()), value, f"{self.name}: {key}")
        except InvalidContentError as error:
            problem = error.problems[0]
            text = str(problem.get("ctx", {}).get("error", problem["msg"]))
            raise BuddysimError(f"{self.name}: {key}: {text}") from None
        return canonical_figures({key: parsed})[key]

    @cached_property
    def _canonical_figures(self) -> dict[str, Any]:
        return canonical_figures(self._parts())

    @classmethod
    def _checked(cls, content: Mapping[str, Any], where: str) -> Self:
        """A machine from a file's content; a BuddysimError that begins with `where` has everything that is wrong."""
        if isinstance(content.get("sources"), Mapping):
            content = {**content, "sources": dict(flat(content["sources"]))}
        problems: list[ErrorDetails] = []
        machine = cls._parsed(content, problems)
        if machine is None or problems:
            raise BuddysimError(f"{where}: {'; '.join(_describe(problems, cls._possible_keys()))}")
        keys = machine.dotted_keys()
        for key in machine.sources:
            if key not in keys and not machine._is_of_others(key):
                raise BuddysimError(f"{where}: sources: {unknown_key(key, keys)}")
        return machine

    @classmethod
    def _parsed(cls, content: Mapping[str, Any], problems: list[ErrorDetails]) -> Self | None:
        return parse_section(cls, content, problems)

    @classmethod
    def _possible_keys(cls) -> list[str]:
        """Every dotted key that a file may have, for messages."""
        raise NotImplementedError

    def _parts(self) -> Mapping[str, object]:
        """The keys and sections whose figures the machine has, by name, in the order of a file."""
        raise NotImplementedError

    def _counted(self, figures: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that a simulation depends on, by dotted key."""
        return dict(figures)

    @classmethod
    def _field(cls, key: str) -> FieldInfo:
        """The field of a dotted key of the machine."""
        raise NotImplementedError

    def _is_of_others(self, key: str) -> bool:
        """Whether a source may be of this key although the machine does not have it."""
        return False

    def _lookup(self, values: Mapping[str, Any], key: str) -> Any:
        if key not in values:
            raise BuddysimError(f"{self.name}: {unknown_key(key, self.dotted_keys())}")
        return values[key]


def _plain(part: object) -> Any:
    """A section, or sections by name, as tables of plain values."""
    if isinstance(part, Mapping):
        return {name: _plain(inner) for name, inner in part.items()}
    return part.model_dump(exclude_none=True) if isinstance(part, Section) else part


@lru_cache(1024)
def _reader(machine: type[MachineFile], key: str, plugin_modules: tuple[ModuleType, ...]) -> TypeAdapter[Any]:
    """Return the reader of a dotted key's value. Plug-ins add keys."""
    field = machine._field(key)
    kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    return TypeAdapter(kind)


def _describe(problems: Sequence[ErrorDetails], known: list[str]) -> Iterator[str]:
    """Yield one part of an error message for each problem of a file's content."""
    sections = {key.rpartition(".")[0] for key in known} - {""}
    for problem in problems[:MAX_PROBLEMS]:
        path = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            yield unknown_key(path, [*known, *sections])
        elif problem["type"] == "missing":
            yield f"{path}: {'this section' if path in sections else 'this key'} is missing"
        elif problem["type"] in ("model_type", "model_attributes_type", "dict_type"):
            yield f"{path}: {shortened(problem['input'])} is not a section of keys"
        else:
            text = str(problem.get("ctx", {}).get("error", problem["msg"]))
            of_key = f"{path}.{text}"  # a rule between the keys of a section: its text begins with a key
            yield of_key if of_key.partition(":")[0] in known else f"{path}: {text}" if path else text
    if len(problems) > MAX_PROBLEMS:
        yield f"and {len(problems) - MAX_PROBLEMS} more"
