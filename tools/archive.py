"""Packed inputs: an archive is unpacked to a temporary folder."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.parsers.tar import unpack


@contextlib.contextmanager
def folder_with(path: Path, name: str) -> Iterator[Path]:
    """Yield the folder with the file `name`: `path` itself, or the folder inside the archive `path`.

    Parameters
    ----------
    path : a folder, or a tar archive, possibly compressed
    name : a file that the folder must hold
    """
    if path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="buddysim-") as temporary:
        unpack(path, Path(temporary))
        inside = sorted(match.parent for match in Path(temporary).rglob(name))
        if len(inside) != 1:
            raise BuddysimError(f"{path}: {len(inside)} files {name} in it: expected one")
        yield inside[0]
