"""Output files that are written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from buddysim.base.errors import BuddysimError


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises a BuddysimError, before a long run, if a file can't be written there."""
    target = Path(path)
    if target.is_dir():
        raise BuddysimError(f"{target}: is a folder: expected a file to write")
    folder = target.parent
    if not folder.is_dir():
        raise BuddysimError(f"{target}: there is no folder {folder} to write it in")
    if target.exists() and not target.is_file():
        return
    if not os.access(folder, os.W_OK):
        raise BuddysimError(f"{target}: no permission to write in {folder}")


def write_whole(path: str | os.PathLike[str], write: Callable[[Path], object]) -> None:
    """Calls `write` with a temporary path in the same folder, then renames that file to `path`.

    A device or a pipe (``/dev/null``) is written directly: it must not be replaced by a file.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        try:
            write(target)
        except OSError as error:
            raise BuddysimError(f"{target}: can't be written: {error.strerror or error}") from None
        return
    target = target.resolve()
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        try:
            write(unfinished)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise BuddysimError(f"{target}: can't be written: {error.strerror or error}") from None
