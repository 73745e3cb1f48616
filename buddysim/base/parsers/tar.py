"""Unpack a tar archive, also one in xz, gzip or bzip2, into a folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from buddysim.base.budget import Budget, max_unpacked_bytes
from buddysim.base.errors import BuddysimError
from buddysim.base.inputs import open_input
from buddysim.base.parsers.refusal import refusal
from buddysim.base.parsers.streams import UnpackedFile, packing_of

#: `tarfile` reads headers of any stated size at once.
_LARGEST_HEADER = 1 << 20
_COPY_BYTES = 1 << 18


def unpack(path: Path, folder: Path) -> None:
    """Unpack the plain files of an archive, without anything that points outside of `folder`.

    What they become is counted before anything is written: a sparse file has no bound by itself.
    `TarFile.extractall(filter="data")` needs Python 3.11.4, and has no bound either.

    Raises
    ------
    BuddysimError
        no archive, a damaged one, one with anything but plain files in it, or one that becomes too large
    """
    file = open_input(path, "archive")
    with file:
        kind = packing_of(file.read(6))
        file.seek(0)
        with UnpackedFile(file, os.fspath(path), kind, _LARGEST_HEADER) as content:
            archive = _opened(content, path)
            members = _members(archive, path)
            total = sum(member.size for member in members)
            free = shutil.disk_usage(folder).free
            if total > free:
                raise BuddysimError(f"{path}: {total} bytes in it, {free} are free in {folder}")
            for member in members:
                _write(archive, member, path, folder)


def read_members(path: Path, names: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of some files of an archive.

    Raises
    ------
    BuddysimError
        as `unpack`, and where one is missing
    """
    with open_input(path, "archive") as file:
        kind = packing_of(file.read(6))
        file.seek(0)
        with UnpackedFile(file, os.fspath(path), kind, _LARGEST_HEADER) as content:
            archive = _opened(content, path)
            members = {member.name: member for member in _members(archive, path)}
            missing = [name for name in names if name not in members]
            if missing:
                raise BuddysimError(f"{path}: no file {missing[0]} in it")
            return {name: _whole(_content(archive, members[name], path), path) for name in names}


def _whole(content: Any, path: Path) -> bytes:
    return b"".join(iter(lambda: _read(content, path), b""))


def _members(archive: Any, path: Path) -> list[Any]:
    """Return the files of an archive, all checked."""
    budget = Budget(os.fspath(path), max_unpacked_bytes(path.stat().st_size))
    members = []
    while (member := _next(archive, path)) is not None:
        if member.isdir():
            continue
        name = PurePosixPath(member.name)
        if not member.isfile() or name.is_absolute() or ".." in name.parts or "\0" in member.name:
            raise BuddysimError(f"{path}: {member.name!r} in it is no plain file inside the archive")
        budget.spend(member.size)
        members.append(member)
    return members


def _write(archive: Any, member: Any, path: Path, folder: Path) -> None:
    target, content = folder / PurePosixPath(member.name), _content(archive, member, path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        out = target.open("wb")
    except OSError as error:  # members in each other's way, names that are too long
        raise BuddysimError(f"{path}: {member.name!r} in it can't be written: {error.strerror}") from None
    with out:
        while part := _read(content, path):
            out.write(part)


def _opened(content: UnpackedFile, path: Path) -> Any:
    import tarfile

    try:
        return tarfile.open(fileobj=content, mode="r:")
    except Exception as error:
        raise refusal(error, _begin(path)) from None


def _next(archive: Any, path: Path) -> Any:
    try:
        return archive.next()
    except Exception as error:
        raise refusal(error, _begin(path)) from None


def _content(archive: Any, member: Any, path: Path) -> Any:
    try:
        return archive.extractfile(member)
    except Exception as error:
        raise refusal(error, _begin(path)) from None


def _read(content: Any, path: Path) -> bytes:
    try:
        part: bytes = content.read(_COPY_BYTES)
    except Exception as error:
        raise refusal(error, _begin(path)) from None
    return part


def _begin(path: Path) -> str:
    return f"{path}: neither a folder nor a whole archive"
