"""The user's cache: what is in it can be made again, so that a command goes on without it."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from functools import cache
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.paths import user_folder
from buddysim.base.terminal import say

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_root() -> Path:
    """Return the folder of the cache: ``$XDG_CACHE_HOME/buddysim``, else ``~/.cache/buddysim``.

    Raises
    ------
    FileNotFoundError
        the user has no home folder
    """
    return user_folder("XDG_CACHE_HOME", ".cache")


def cache_subfolder(name: str = "") -> Path:
    """Return a folder of the cache that can be written; where none can, a temporary one, which a note says.

    Raises
    ------
    BuddysimError
        a folder that belongs to another user: its files could be anything
    """
    begin = ""
    try:
        folder = cache_root() / name
        begin = f"{folder}: "
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_owner(folder)
        if folder.stat().st_mode & _OTHERS:
            folder.chmod(folder.stat().st_mode & ~_OTHERS)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        return _temporary(f"{begin}{error.strerror or error}") / name


def is_own(path: Path) -> bool:
    """Return whether a file of the cache exists and only this user can have written it.

    Raises
    ------
    BuddysimError
        a file of another user
    """
    if not path.is_file():
        return False
    _check_owner(path)
    return not path.stat().st_mode & _OTHERS


@cache
def _temporary(reason: str) -> Path:
    say(f"note: {reason}: it is only a cache: this command goes on without it")
    temporary = Path(tempfile.mkdtemp(prefix="buddysim-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


def _check_owner(path: Path) -> None:
    if path.stat().st_uid not in (os.getuid(), 0):
        raise BuddysimError(f"{path}: belongs to another user: expected a cache of your own: set XDG_CACHE_HOME")
