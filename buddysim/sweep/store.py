"""A store of results: one immutable file for each, no locks, safe for any number of writers on a shared folder.

::

    STORE                       format of the store
    results/3f/3f9a...          one result each, fanned out by the first two digits of its name
    parts/ab12....parquet       results that were compacted (`buddysim.sweep.compaction`)
        unfinished/                 files that are being written, under unique names

A file is written completely under a name of its own, then renamed: a reader sees nothing, or all of it. Two processes
may simulate the same point; the second renames over the first, and both wrote the same result. Files never change, so a
reader loses nothing while another process writes, or through the cache of a network file system: at worst it misses a
new result, and its point is simulated a second time.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.output import flush_to_disk
from buddysim.base.paths import exists
from buddysim.sweep.abandoned import remove_abandoned
from buddysim.sweep.stored_result import DamagedResultError, NewerResultError, StoredResult, body_of, read_record

if TYPE_CHECKING:
    from buddysim.sweep.index import Index

FORMAT = 1
VARIABLE = "BUDDYSIM_STORE"
FOLDER = Path("out") / "store"
_HEAD = "buddysim store"
_DIGITS = 2
#: Errors of a file system that may pass: full, over quota, a network that comes back.
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.EAGAIN, errno.ETIMEDOUT, errno.EFBIG)
TIMEOUT_S = 120.0

Waiting = Callable[[str], object]


class FullStoreError(BuddysimError):
    """A store that could not be written for `TIMEOUT_S`: what would be simulated next would be lost, too."""


def default_folder() -> Path:
    """``BUDDYSIM_STORE``, else ``out/store`` of the working folder."""
    return Path(os.environ.get(VARIABLE) or FOLDER)


@dataclass
class Store:
    """A folder with results.

    Attributes
    ----------
    folder : its path
    notes : problems met while reading: damaged files, and files of a newer version
    index : the index of the last call of `verified`
    """

    folder: Path
    notes: list[str] = field(default_factory=list)
    index: Index | None = field(default=None, repr=False)
    _parts: dict[str, dict[str, int]] = field(default_factory=dict, repr=False)

    @staticmethod
    def at(folder: str | os.PathLike[str] | None = None) -> Store:
        """The store of a folder, which is made when a result is written; None: the default one.

        Raises
        ------
        BuddysimError
            where a newer version made it, or the folder is something else
        """
        store = Store(Path(default_folder() if folder is None else folder).absolute())
        store._check_format()
        return store

    def check_writable(self) -> None:
        """Makes the store where there is none; a BuddysimError where results can't be written."""
        try:
            self.results.mkdir(parents=True, exist_ok=True)
            self.unfinished.mkdir(exist_ok=True)
            if not (self.folder / "STORE").exists():
                self.write(self.folder / "STORE", f"{_HEAD} {FORMAT}\n".encode())
            probe = self._unfinished_name()
            probe.touch()
            remove_abandoned(self.unfinished.iterdir(), probe.stat().st_mtime)
            probe.unlink()
        except OSError as error:
            raise BuddysimError(f"{self.folder}: the store can't be written: {error.strerror}") from None

    @property
    def results(self) -> Path:
        """The folder of single results."""
        return self.folder / "results"

    @property
    def parts(self) -> Path:
        """The folder of compacted results."""
        return self.folder / "parts"

    @property
    def unfinished(self) -> Path:
        """The folder of files that are being written."""
        return self.folder / "unfinished"

    def path_of(self, name: str) -> Path:
        """Return the path of a result's file, which may not exist."""
        return self.results / name[:_DIGITS] / name

    def put(self, record: StoredResult, timeout_s: float = TIMEOUT_S, waiting: Waiting | None = None) -> int:
        """Writes a result; returns its bytes.

        Parameters
        ----------
        timeout_s : how long to try again where the disk is full or doesn't answer
        waiting : called with the reason before such a wait

        Raises
        ------
        BuddysimError
            where it can't be written
        """
        content, path = record.to_bytes(), self.path_of(record.key)
        end, pause = time.monotonic() + timeout_s, 0.05
        while True:
            try:
                self.write(path, content)
                return len(content)
            except OSError as error:
                if error.errno not in _PASSING:
                    raise BuddysimError(f"{path}: the store can't be written: {error.strerror}") from None
                if time.monotonic() + pause > end:
                    raise FullStoreError(
                        f"{self.folder}: the store can't be written for {timeout_s:.0f} s: {error.strerror}"
                    ) from None
                if waiting is not None:
                    waiting(f"{self.folder}: {error.strerror}: trying again")
                time.sleep(pause)
                pause = min(2 * pause, 5.0)

    def get(self, name: str) -> StoredResult | None:
        """The result of a name; None where there is none, or a damaged one, which `notes` then says."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return self._checked(self.path_of(name).read_bytes(), name, str(self.path_of(name)))
        for part in self._part_with(name):
            from buddysim.sweep import compaction

            record = self._checked(compaction.content(self.parts / part, self._parts[part][name]), name, part)
            if record is not None:
                return record
        return None

    def singles(self) -> dict[str, tuple[int, int]]:
        """Size and time of the last change (ns) of the files of single results, by name."""
        stamps: dict[str, tuple[int, int]] = {}
        for folder in self._folders():
            with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
                for entry in entries:
                    try:
                        status = entry.stat()
                    except FileNotFoundError:
                        continue
                    stamps[entry.name] = status.st_size, status.st_mtime_ns
        return stamps

    def all_keys(self) -> set[str]:
        """Return the keys of all stored results; their content is not read."""
        keys = set(self.singles())  # first: compaction writes a part before it removes single files
        self._list_parts()
        return keys.union(*self._parts.values())

    def part_names(self) -> list[str]:
        """The files of compacted results."""
        self._list_parts()
        return sorted(self._parts)

    def keys_in(self, part: str) -> set[str]:
        """The names of the results of a part."""
        return set(self._parts[part])

    def remove(self, name: str) -> None:
        """Remove a single result, if it exists."""
        self.path_of(name).unlink(missing_ok=True)

    def verified(self, names: Iterable[str]) -> set[str]:
        """Return the names whose results exist, complete and of their name.

        With the index (`buddysim.sweep.index`) only files that it doesn't know are read; without it, every one.
        """
        from buddysim.sweep.index import Index, installed

        if installed():
            self.index = Index(self).refresh()
            return self.index.all_keys().intersection(names)
        existing = self.all_keys()
        return {name for name in names if name in existing and self.get(name) is not None}

    def _checked(self, content: bytes, name: str, where: str) -> StoredResult | None:
        try:
            return read_record(content, name)
        except DamagedResultError as damage:
            self.notes.append(f"{where}: damaged ({damage}): simulated again")
        except NewerResultError as newer:
            raise BuddysimError(f"{where}: a newer version of buddysim wrote it: {newer}") from None
        return None

    def body(self, name: str) -> bytes:
        """The two lines of a single result (`record`); raises `DamagedResultError`, `NewerResultError` or OSError."""
        return body_of(self.path_of(name).read_bytes())

    def write(self, path: Path, content: bytes) -> None:
        """Writes a file of the store, whole or not at all; OSError where it can't."""
        unfinished = self._unfinished_name()
        try:
            try:
                unfinished.write_bytes(content)
            except FileNotFoundError:
                self.unfinished.mkdir(parents=True, exist_ok=True)
                unfinished.write_bytes(content)
            flush_to_disk(unfinished)
            try:
                unfinished.rename(path)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                unfinished.rename(path)
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise

    def _unfinished_name(self) -> Path:
        return self.unfinished / f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(8)}"

    def _folders(self) -> Iterator[str]:
        with contextlib.suppress(FileNotFoundError), os.scandir(self.results) as entries:
            yield from sorted(entry.path for entry in entries)

    def _part_with(self, name: str) -> list[str]:
        if not any(name in names for names in self._parts.values()):
            self._list_parts()
        return [part for part, names in self._parts.items() if name in names]

    def _list_parts(self) -> None:
        """Reads the names in parts that are new."""
        existing = {path.name for path in self.parts.glob("*.parquet")}
        self._parts = {part: names for part, names in self._parts.items() if part in existing}
        for part in sorted(existing - self._parts.keys()):
            from buddysim.sweep import compaction

            self._parts[part] = compaction.names(self.parts / part)

    def _check_format(self) -> None:
        if exists(self.folder) and not self.folder.is_dir():
            raise BuddysimError(f"{self.folder}: not a folder: expected that of a store")
        try:
            text = (self.folder / "STORE").read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:
            return
        except OSError as error:
            raise BuddysimError(f"{self.folder}: the store can't be read: {error.strerror}") from None
        head, _, version = text.strip().rpartition(" ")
        if head != _HEAD or not version.isdecimal():
            raise BuddysimError(f"{self.folder}/STORE: not a store of results: expected '{_HEAD} {FORMAT}'")
        if int(version) > FORMAT:
            raise BuddysimError(
                f"{self.folder}: a store of format {version}, which a newer version of buddysim made: expected "
                f"{FORMAT} or lower"
            )
