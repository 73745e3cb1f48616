"""Open a file that a user names: a regular file, and no part of an interrupted capture."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO, NoReturn

from buddysim.base.errors import BuddysimError
from buddysim.base.output import INCOMPLETE

AnyPath = str | os.PathLike[str]


def open_descriptor(path: AnyPath, what: str, *, incomplete: bool = False) -> int:
    """Return a descriptor that reads a user's file; the caller closes it.

    Parameters
    ----------
    path : the file
    what : the kind of file, for messages: ``"machine file"``
    incomplete : accept the part that an interrupted capture left

    Raises
    ------
    BuddysimError
        where it can't be opened, is no regular file (a pipe may never end), or is such a part
    """
    try:
        name = os.fspath(path)
        if not name:
            raise BuddysimError(f"an empty name: expected a {what}")
        if not incomplete and Path(name).name.endswith(INCOMPLETE):
            raise BuddysimError(
                f"{name}: is what an interrupted capture left: "
                "'python -m buddysim recover' makes a file of what it holds"
            )
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        _refuse(path, what, getattr(error, "strerror", None) or str(error))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        _refuse(path, what, "Is a directory" if stat.S_ISDIR(mode) else "not a regular file")
    return descriptor


def open_input(path: AnyPath, what: str, *, incomplete: bool = False) -> BinaryIO:
    """Return a user's file, open for reading; the parameters and errors are those of `open_descriptor`."""
    return os.fdopen(open_descriptor(path, what, incomplete=incomplete), "rb")


def read_bytes(path: AnyPath, what: str, max_bytes: int, *, incomplete: bool = False) -> bytes:
    """Return all bytes of a user's file.

    Parameters
    ----------
    max_bytes : its maximum size
    path, what, incomplete : as for `open_descriptor`

    Raises
    ------
    BuddysimError
        as `open_descriptor`, and where the file is longer
    """
    with open_input(path, what, incomplete=incomplete) as file:
        try:
            raw = file.read(max_bytes + 1)
        except OSError as error:
            _refuse(path, what, error.strerror or str(error))
    if len(raw) > max_bytes:
        raise BuddysimError(f"{os.fspath(path)}: not a {what}: longer than {max_bytes} bytes")
    return raw


def _refuse(path: AnyPath, what: str, reason: str) -> NoReturn:
    raise BuddysimError(f"{os.fspath(path)}: can't read the {what}: {reason}") from None
