"""A model's ``config.json`` as a typed configuration: every problem is an error of one line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import misspelling_hint, shortened
from buddysim.base.parsers.typed import InvalidContentError, model_of
from buddysim.base.textfile import read_json
from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.model_config import ModelConfig, error_line, shown
from buddysim.training.architectures.registry import REGISTRY

LARGEST_FILE = 4 << 20
_WHAT = "model configuration"
_LISTED = "one that buddysim list architectures prints"


@dataclass(frozen=True)
class UnreadConfig:
    """The content of a configuration.

    Attributes
    ----------
    where : what errors begin with
    name : as of `ReadConfig`
    """

    content: Mapping[str, Any]
    where: str
    name: str

    def has_reader(self, head: str | None = None) -> bool:
        """Whether an architecture here reads it: by its class, else by its type; with this head, if one is named.

        Content without a type, or with a list of classes that is none, has no other reader either.
        """
        classes, known = self.content.get("architectures"), dict(REGISTRY.items())
        if not isinstance(self.content.get("model_type"), str):
            return head is None
        if classes is None:
            read = [one for one in known.values() if self.content["model_type"] in one.types]
        elif isinstance(classes, list) and classes and all(isinstance(one, str) for one in classes):
            read = [known[one] for one in classes if one in known]
            read = [one for one in read if self.content["model_type"] in one.types]
        else:
            return head is None
        return any(head in (None, one.head) for one in read)


@dataclass(frozen=True)
class ReadConfig:
    """A configuration, and what it is of.

    Attributes
    ----------
    name : of the file, of its folder where the file is called config.json, or in the configuration
    architecture : that reads its keys
    keys : typed
    unread : the content that it was read from
    """

    name: str
    architecture: Architecture
    keys: ModelConfig
    unread: UnreadConfig = field(compare=False)

    @property
    def max_positions(self) -> int | None:
        """Tokens of the longest sequence; None where the architecture sets no limit."""
        return self.keys.max_positions


@within_budget
def read_config(source: str | os.PathLike[str] | Mapping[str, Any]) -> ReadConfig:
    """Read a configuration as Hugging Face writes it.

    Parameters
    ----------
    source : the file, or its content

    Raises
    ------
    BuddysimError
        a file that can't be read, an architecture that isn't known, a key that is missing or wrong
    """
    return parse_config(content_of(source))


def content_of(source: str | os.PathLike[str] | Mapping[str, Any]) -> UnreadConfig:
    """Return what a configuration's file holds, or its content itself.

    Raises
    ------
    BuddysimError
        a file that can't be read, or that holds no object
    """
    if isinstance(source, Mapping):
        where = _name_within(source) or _WHAT
        return UnreadConfig(source, where, _name_within(source) or str(source.get("model_type", "model")))
    path = Path(source)
    content = read_json(path, _WHAT, LARGEST_FILE)
    if not isinstance(content, dict):
        raise BuddysimError(f"{path}: expected an object with the keys of a {_WHAT}, found {shown(content)}")
    return UnreadConfig(content, os.fspath(path), path.absolute().parent.name if path.stem == "config" else path.stem)


def parse_config(unread: UnreadConfig) -> ReadConfig:
    """Return the configuration of a content."""
    content, where = unread.content, unread.where
    architecture = _architecture_of(content, where)
    try:
        keys = model_of(architecture.config, dict(content), where)
    except InvalidContentError as error:
        raise error_line(where, error.problems, content) from None
    return ReadConfig(unread.name, architecture, keys, unread)


def _name_within(content: Mapping[str, Any]) -> str:
    facts = content.get("_facts")
    inner = facts.get("name") if isinstance(facts, Mapping) else content.get("_name_or_path")
    return inner.rpartition("/")[2] if isinstance(inner, str) else ""


def _architecture_of(content: Mapping[str, Any], where: str) -> Architecture:
    """The architecture that a file names: by its class, else by its type."""
    known = dict(REGISTRY.items())
    classes, model_type = content.get("architectures"), content.get("model_type")
    if classes is None:
        return _architecture_of_type(known, model_type, where)
    if not isinstance(classes, list) or not classes or not all(isinstance(one, str) for one in classes):
        raise BuddysimError(f"{where}: architectures: expected a list with the name of a class, found {shown(classes)}")
    named = [one for one in classes if one in known]
    if not named:
        raise BuddysimError(
            f"{where}: architectures: {shortened(classes[0])} is not known: expected {_LISTED}"
            f"{misspelling_hint(classes[0], known, 0.9)}"
        )
    architecture: Architecture = known[named[0]]
    if model_type is not None and model_type not in architecture.types:
        raise BuddysimError(
            f"{where}: model_type: expected {architecture.model_type!r}, as architectures has {architecture.name}, "
            f"found {shown(model_type)}"
        )
    return architecture


def _architecture_of_type(known: Mapping[str, Architecture], model_type: object, where: str) -> Architecture:
    types = {one_type: one for one in reversed(list(known.values())) for one_type in one.types}
    if model_type is None:
        raise BuddysimError(f"{where}: architectures: expected a list with {_LISTED}, found no such key")
    if model_type not in types:
        near = misspelling_hint(model_type, types, 0.8) if isinstance(model_type, str) else ""
        raise BuddysimError(f"{where}: model_type: expected one of {', '.join(types)}, found {shown(model_type)}{near}")
    return types[str(model_type)]
