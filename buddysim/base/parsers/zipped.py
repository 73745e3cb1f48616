"""The members of a zip file."""

from __future__ import annotations

import os
import zipfile
from types import TracebackType

from buddysim.base.budget import Budget, max_unpacked_bytes
from buddysim.base.errors import BuddysimError
from buddysim.base.inputs import open_input
from buddysim.base.parsers.refusal import refusal

_MAX_MEMBERS = 1 << 16


class ZippedFile:
    """A zip file, open for reading: its directory's sizes, together, are within the budget, and nothing has more.

    Parameters
    ----------
    path : of the file
    what : the kind of file, for messages
    is_plain : whether compressed members are refused, so that it becomes no more than its own bytes

    Attributes
    ----------
    members : of its directory
    """

    def __init__(self, path: str | os.PathLike[str], what: str, *, is_plain: bool = False) -> None:
        self._begin = f"{os.fspath(path)}: not a {what}"
        self._file = open_input(path, what)
        try:
            self._archive = self._opened()
            self.members = self._archive.infolist()
            self._check(os.fstat(self._file.fileno()).st_size, os.fspath(path), is_plain)
        except BaseException:
            self._file.close()
            raise

    def read(self, member: zipfile.ZipInfo) -> bytes:
        """Return the content of a member."""
        try:
            return self._archive.read(member)
        except Exception as error:
            raise refusal(error, self._begin) from None

    def __enter__(self) -> ZippedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._archive.close()
        self._file.close()

    def _opened(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self._file)
        except Exception as error:
            raise refusal(error, self._begin) from None

    def _check(self, size: int, where: str, is_plain: bool) -> None:
        if len(self.members) > _MAX_MEMBERS:
            raise BuddysimError(f"{self._begin}: {len(self.members)} members: expected at most {_MAX_MEMBERS}")
        budget = Budget(where, size if is_plain else max_unpacked_bytes(size))
        for member in self.members:
            if is_plain and member.compress_type:
                raise BuddysimError(
                    f"{self._begin}: {member.filename!r} in it: expected a member that isn't compressed"
                )
            budget.spend(member.file_size)
