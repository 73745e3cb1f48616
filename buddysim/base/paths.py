"""Paths that a user gave: whether there is a file, and where the home folder is."""

from __future__ import annotations

import errno
import os
from pathlib import Path

AnyPath = str | os.PathLike[str]


def exists(path: AnyPath) -> bool:
    """Return whether there is a file or a folder; a name that none can have is that of none."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises for a name that is too long


def is_file(path: AnyPath) -> bool:
    """Return whether there is a file; a name that none can have is that of none."""
    return os.path.isfile(path)  # noqa: PTH113 - as above


def expanded(path: AnyPath) -> Path:
    """Return a path with the home folder for its ``~``; as it is where that user has none."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises where there is no home folder


def user_folder(variable: str, in_home: str) -> Path:
    """Return this package's folder of a user's files.

    Parameters
    ----------
    variable : the environment variable that names the folder above it
    in_home : that folder in the home folder, where the variable is not set

    Raises
    ------
    FileNotFoundError
        the user has no home folder
    """
    folder = os.environ.get(variable) or os.path.expanduser(f"~/{in_home}")  # noqa: PTH111 - as above
    if folder.startswith("~"):
        raise FileNotFoundError(errno.ENOENT, f"no home folder: set {variable}")
    return Path(folder) / "buddysim"
