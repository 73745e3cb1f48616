"""Packed inputs: an archive is unpacked to a temporary folder."""

from __future__ import annotations

import contextlib
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from lzma import LZMAError
from pathlib import Path, PurePosixPath

from buddysim.base.errors import BuddysimError
from buddysim.base.inputs import open_input

#: Bytes that a byte of an archive may become: more than what xz makes of zeros. A sparse file has no such bound.
_LARGEST_GROWTH = 10_000


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
        try:
            with open_input(path, "archive") as file, tarfile.open(fileobj=file) as archive:
                _unpack(archive, path, Path(temporary))
        except (tarfile.TarError, LZMAError, zlib.error, EOFError, ValueError, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BuddysimError(f"{path}: neither a folder nor a whole archive ({reason})") from None
        inside = sorted(match.parent for match in Path(temporary).rglob(name))
        if len(inside) != 1:
            raise BuddysimError(f"{path}: {len(inside)} files {name} in it: expected one")
        yield inside[0]


def _unpack(archive: tarfile.TarFile, path: Path, folder: Path) -> None:
    """Unpack the plain files of an archive, without anything that points outside `folder`.

    `TarFile.extractall(filter="data")` needs Python 3.11.4.
    """
    size = path.stat().st_size
    for member in archive:
        if member.isdir():
            continue
        name = PurePosixPath(member.name)
        content = archive.extractfile(member) if member.isfile() else None
        if content is None or name.is_absolute() or ".." in name.parts or "\0" in member.name:
            raise BuddysimError(f"{path}: {member.name!r} in it is no plain file inside the archive")
        if member.size > _LARGEST_GROWTH * max(size, 1):
            raise BuddysimError(
                f"{path}: {member.name!r} in it has {member.size} bytes: more than the archive's {size} can hold"
            )
        free = shutil.disk_usage(folder).free
        if member.size > free:
            raise BuddysimError(f"{path}: {member.name!r} in it has {member.size} bytes, {free} are free in {folder}")
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with content, target.open("wb") as file:
            shutil.copyfileobj(content, file)
