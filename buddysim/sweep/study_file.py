"""Studies as TOML files: paths in them are relative to the file's folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from buddysim.base.budget import within_budget
from buddysim.base.paths import expanded
from buddysim.base.textfile import parse_toml, read_text
from buddysim.machine.presets import every_preset
from buddysim.sweep.axis import Axis
from buddysim.sweep.study import Study, StudyReader

LARGEST_FILE = 2**20


def study_content(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The tables of a study file; a BuddysimError where it can't be read."""
    return parse_toml(read_text(path, "study file", LARGEST_FILE), os.fspath(path))


@within_budget
def read_study(path: str | os.PathLike[str], changed: Mapping[str, Any] | None = None) -> Study:
    """The study of a file.

    Parameters
    ----------
    changed : values of names on top of the file's: a list of values is an axis

    Raises
    ------
    BuddysimError
        where the file can't be read, or has an unknown name or a wrong value
    """
    content = {"title": Path(path).stem, **study_content(path)}
    for table in ("set", "grid"):
        content[table] = _without(content.get(table, {}), changed or {})
    reader = StudyReader(os.fspath(path), lambda axis, name, text: _resolved(Path(path).parent, axis, name, text))
    return reader.read(content, changed)


def _without(table: Any, names: Mapping[str, Any], prefix: str = "") -> Any:
    """A table without some dotted names."""
    if not isinstance(table, Mapping):
        return table
    remaining = {}
    for name, value in table.items():
        if prefix + name in names:
            continue
        remaining[name] = _without(value, names, f"{prefix}{name}.") if isinstance(value, Mapping) else value
    return remaining


def _resolved(folder: Path, axis: Axis | None, name: str, text: str) -> str:
    """Return the value of a text in the file: a relative path begins at the file's folder."""
    path = expanded(text)
    named = axis is None or axis.file or (name == "machine" and text not in every_preset() and _is_path(text))
    if named or (name == "network" and _is_path(text)):
        return str(path if path.is_absolute() else (folder / path).absolute())
    return text


def _is_path(text: str) -> bool:
    return os.sep in text or text.endswith((".toml", ".json"))
