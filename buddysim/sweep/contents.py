"""Checksums of the files that results depend on, each file read once as long as it stays the same."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.inputs import open_input

_BLOCK_BYTES = 1 << 20
Stamp = tuple[int, int, int, int]
_known: dict[str, tuple[Stamp, str]] = {}


def stamp_of(path: str) -> Stamp:
    """Return device, inode, size and time of the last change (ns): equal until the file is written.

    Raises
    ------
    BuddysimError
        where there is no such file
    """
    try:
        status = Path(path).stat()
    except OSError as error:
        raise BuddysimError(f"{path}: can't be read: {error.strerror}") from None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def content_checksum(path: str) -> str:
    """SHA-256 of a file's bytes, in hex.

    Raises
    ------
    BuddysimError
        where it can't be read
    """
    path = os.fspath(path)
    stamp = stamp_of(path)
    known = _known.get(path)
    if known is None or known[0] != stamp:
        try:
            with open_input(path, "file") as file:
                digest = hashlib.sha256()
                while block := file.read(_BLOCK_BYTES):
                    digest.update(block)
            known = stamp, digest.hexdigest()
        except OSError as error:
            raise BuddysimError(f"{path}: can't be read: {error.strerror}") from None
        _known[path] = known
    return known[1]
