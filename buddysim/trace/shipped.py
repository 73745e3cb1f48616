"""The shipped real traces: all of them in a clone, a small one in every installation."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.paths import exists
from buddysim.base.textfile import parse_toml

MANIFEST = "MANIFEST.toml"

_PACKAGE = Path(__file__).parents[1]
#: Where they lie: with the sources, and in an installed package (setup.py copies them there).
FOLDERS: Sequence[Path] = (_PACKAGE.parent / "traces", _PACKAGE / "trace" / "shipped")


@dataclass(frozen=True)
class ShippedTrace:
    """A trace of the manifest.

    Attributes
    ----------
    name : without its ending
    bytes, sha256 : of its file
    about, source, licence : what it is, and whose
    command : the command that makes it from its source
    path : where it lies here; None where this installation came without it
    """

    name: str
    bytes: int
    sha256: str
    about: str
    source: str
    licence: str
    command: str
    path: Path | None


def shipped_traces() -> list[ShippedTrace]:
    """Every trace of the manifest, in its order; none where the package came without a manifest."""
    folder = next((folder for folder in FOLDERS if (folder / MANIFEST).is_file()), None)
    if folder is None:
        return []
    entries = parse_toml((folder / MANIFEST).read_text(encoding="utf-8"))["trace"]
    return [_shipped(entry) for entry in entries]


def shipped_trace(name: str) -> ShippedTrace:
    """One of them by its name, with or without ``.bin``; a BuddysimError names the nearest of an unknown one."""
    known = {trace.name: trace for trace in shipped_traces()}
    stem = name.removesuffix(".bin")
    if stem not in known:
        raise BuddysimError(
            f"traces: {shortened(name)}: unknown: expected one of {', '.join(known)}{hint(stem, known)}"
        )
    return known[stem]


def trace_path(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return the path of a trace: that of a shipped one for its name alone, where no file has that name.

    Raises
    ------
    BuddysimError
        a name that neither a file nor a trace has, or whose trace this installation lacks
    """
    name = os.fspath(path)
    if not isinstance(name, str) or not re.fullmatch(r"[\w-]+", name) or exists(name):
        return path
    trace = next((trace for trace in shipped_traces() if trace.name == name), None)
    if trace is None:
        known = [trace.name for trace in shipped_traces()]
        raise BuddysimError(f"{shortened(name)}: no such file, and no trace of this name{hint(name, known)}")
    if trace.path is None:
        raise BuddysimError(f"{name}: this installation lacks it: 'buddysim traces {name}' shows how it is made")
    return trace.path


def _shipped(entry: dict[str, object]) -> ShippedTrace:
    file = str(entry["file"])
    path = next((folder / file for folder in FOLDERS if (folder / file).is_file()), None)
    texts = {key: str(entry[key]) for key in ("sha256", "about", "source", "licence", "command")}
    return ShippedTrace(file.removesuffix(".bin"), int(str(entry["bytes"])), path=path, **texts)
