"""Machine files: the presets, and users' own files, which may name a preset as their base."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import accumulate
from typing import Any

from buddysim.base.dotted import flat, merged
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import nearest, shortened, shortened_name
from buddysim.base.paths import exists
from buddysim.base.textfile import parse_toml, read_toml

LARGEST_FILE = 2**20
_FOLDER = resources.files("buddysim.machine") / "presets"
_TRAINING_FOLDER = _FOLDER / "training"


def replay_presets() -> list[str]:
    """The names of the machines that come with buddysim and can replay a trace, in alphabetical order."""
    return _names_in(_FOLDER)


def training_presets() -> list[str]:
    """The names of the machines that come with buddysim and are for training only, in alphabetical order."""
    return _names_in(_TRAINING_FOLDER)


def every_preset() -> list[str]:
    """The names of all machines that come with buddysim, in alphabetical order."""
    return sorted([*replay_presets(), *training_presets()])


def _names_in(folder: Traversable) -> list[str]:
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def preset(name: str) -> dict[str, Any]:
    """The content of the file of a machine that comes with buddysim, on top of its ``base`` if it names one."""
    return copy.deepcopy(_parsed(name))


@cache
def _parsed(name: str) -> dict[str, Any]:
    folder = _TRAINING_FOLDER if name in training_presets() else _FOLDER
    return _whole(parse_toml((folder / f"{name}.toml").read_text(encoding="utf-8"), name), name)


def is_path(name: str) -> bool:
    """Whether what a user gave is meant as a file, not as the name of a machine."""
    return name.endswith(".toml") or os.sep in name or exists(name)


def file_content(path: str) -> dict[str, Any]:
    """The content of a machine file, on top of that of the preset that it names as its ``base``."""
    return _whole(read_toml(path, "machine file", LARGEST_FILE), path)


def _whole(content: dict[str, Any], where: str) -> dict[str, Any]:
    """The content with a source for each key, and with what its ``base`` adds."""
    if isinstance(content.get("sources"), dict):
        content["sources"] = _sources_of_keys(content)
    return _on_base(content, where)


def _sources_of_keys(content: dict[str, Any]) -> dict[str, Any]:
    """The sources by key; the source of a section is that of all its keys in the file without one of their own."""
    named = dict(flat(content["sources"]))
    sources, sections = dict(named), set[str]()
    for key, _ in flat({**content, "sources": {}}):
        outer_first = list(accumulate(key.split("."), "{}.{}".format))
        sections.update(outer_first[:-1])
        for name in filter(named.__contains__, outer_first):
            sources[key] = named[name]
    return {name: source for name, source in sources.items() if name not in sections}


def _on_base(content: dict[str, Any], where: str) -> dict[str, Any]:
    """The content with all that it does not say taken from the preset that it names as its ``base``."""
    if "base" not in content:
        return content
    base = content.pop("base")
    if base not in every_preset():
        near = ", ".join(nearest_machines(str(base), every_preset()))
        raise BuddysimError(
            f"{where}: base: {shortened(base)}: unknown preset"
            + (f" (nearest: {near})" if near else ": expected a name that `buddysim machines` lists")
        )
    below = preset(base)
    changed = {key for key, _ in flat(content)}
    below["sources"] = {key: source for key, source in flat(below.get("sources", {})) if key not in changed}
    return merged(below, content)


def machine_content(name: str, expected: Callable[[], Sequence[str]]) -> dict[str, Any]:
    """The content of a preset by its name, or of a machine file by its path.

    Parameters
    ----------
    name : what a user gave
    expected : returns the names that a message offers where it is neither

    Raises
    ------
    BuddysimError
        where it is neither, or the file can't be read
    """
    if name in every_preset():
        return preset(name)
    if is_path(name):
        return file_content(name)
    raise unknown_machine(name, expected())


def unknown_machine(name: str, known: Sequence[str]) -> BuddysimError:
    """Return the error for a name that is neither a preset nor a file, with the nearest presets if there are any."""
    near = nearest_machines(name, known)
    if near:
        return BuddysimError(f"{shortened_name(name)}: unknown machine (nearest: {', '.join(near)})")
    return BuddysimError(
        f"{shortened_name(name)}: unknown machine: expected a name that `buddysim machines` lists, or a file ending in "
        ".toml"
    )


def nearest_machines(name: str, known: Sequence[str]) -> list[str]:
    """Return the presets that a wrong name may mean: all variants of a model, or the most similar name.

    A name with a number means a GPU of that number: `4090` is near `rtx-4090`, and near nothing else.
    """
    folded = name.lower()
    variants = [preset for preset in known if preset.startswith(f"{folded}-") or folded in preset.split("-")]
    if variants:
        return variants
    similar = nearest(folded, known)
    if similar is None or not (
        _have_one_number(folded, similar) or SequenceMatcher(None, folded, similar).ratio() > 0.8
    ):
        return []
    return [similar]


def _have_one_number(name: str, preset: str) -> bool:
    """Whether the name has no number, or one that a number of the preset begins with."""
    numbers = re.findall(r"[0-9]+", name)
    return not numbers or any(has.startswith(number) for number in numbers for has in re.findall(r"[0-9]+", preset))
