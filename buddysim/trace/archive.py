"""Inputs that come packed: a folder, or an archive that is unpacked for as long as it is needed."""

from __future__ import annotations

import contextlib
import tarfile
import tempfile
from collections.abc import Iterator
from lzma import LZMAError
from pathlib import Path

from buddysim.errors import BuddysimError


@contextlib.contextmanager
def folder_with(path: Path, name: str) -> Iterator[Path]:
    """The folder that holds the file `name`: `path` itself, or the one inside the archive `path`.

    Parameters
    ----------
    path : a folder, or a tar archive, possibly compressed
    name : a file that the folder must hold
    """
    if path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="buddysim-") as temporary:
        try:
            with tarfile.open(path) as archive:
                archive.extractall(temporary, filter="data")
        except (tarfile.TarError, LZMAError, EOFError) as error:
            raise BuddysimError(f"{path}: neither a folder nor a whole archive ({error})") from None
        inside = sorted(found.parent for found in Path(temporary).rglob(name))
        if len(inside) != 1:
            raise BuddysimError(f"{path}: {len(inside)} files {name} in it, expected one")
        yield inside[0]
