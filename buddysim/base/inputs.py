"""Open a file that a user names: a regular file, and no part of an interrupted capture."""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn, TypeVar

from buddysim.base.budget import opened
from buddysim.base.errors import BuddysimError
from buddysim.base.output import INCOMPLETE

if TYPE_CHECKING:
    from typing_extensions import Buffer

AnyPath = str | os.PathLike[str]
T = TypeVar("T")


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
    status = os.fstat(descriptor)
    mode = status.st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        _refuse(path, what, "Is a directory" if stat.S_ISDIR(mode) else "not a regular file")
    opened(name, status.st_size)
    return descriptor


def open_input(path: AnyPath, what: str, *, incomplete: bool = False) -> BinaryIO:
    """Return a user's file, open for reading; the parameters and errors are those of `open_descriptor`."""
    return io.BufferedReader(_Readable(open_descriptor(path, what, incomplete=incomplete), os.fspath(path)))


class _Readable(io.FileIO):
    """A descriptor that reads, or raises: some files of the kernel have nothing to read at once."""

    def __init__(self, descriptor: int, path: str) -> None:
        super().__init__(descriptor, "rb")
        self._path = path

    def readinto(self, buffer: Buffer, /) -> int:
        """Fill the buffer; 0 at the end."""
        count: int | None = super().readinto(buffer)
        return self._some(count)

    def readall(self) -> bytes:
        """All bytes up to the end."""
        content: bytes | None = super().readall()
        return self._some(content)

    def _some(self, read: T | None) -> T:
        if read is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), self._path)
        return read


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
