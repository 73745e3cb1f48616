"""Streams of xz and gzip, read piece by piece within a budget."""

from __future__ import annotations

import io
import os
from typing import Any, BinaryIO

from buddysim.base.budget import Budget, max_unpacked_bytes
from buddysim.base.errors import BuddysimError
from buddysim.base.parsers.refusal import refusal

_LARGEST_READ = 1 << 26
_MAGIC = {b"\xfd7zXZ\0": "xz", b"\x1f\x8b": "gzip", b"BZh": "bzip2"}


class UnpackedFile(io.RawIOBase):
    """A file that is unpacked while it is read; what it becomes counts against its budget.

    Parameters
    ----------
    file : open for reading, closed with this one
    where : its path
    kind : ``"xz"``, ``"gzip"`` or ``"bzip2"``; empty: the file is plain
    max_at_once : bytes of one `read`, at most
    size : bytes of the file; None: it has a descriptor, which knows
    """

    def __init__(
        self, file: BinaryIO, where: str, kind: str, max_at_once: int | None = None, size: int | None = None
    ) -> None:
        self._packed, self._where, self._max_at_once = file, where, max_at_once
        self._begin = f"{where}: {f'the {kind} stream' if kind else 'the file'} is damaged or cut off"
        self._budget = Budget(where, max_unpacked_bytes(os.fstat(file.fileno()).st_size if size is None else size))
        self._file: Any = file if not kind else _opened(file, kind)

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes; fewer at the end alone."""
        if self._max_at_once is not None and size > self._max_at_once:
            raise BuddysimError(f"{self._where}: a part of {size} bytes: expected at most {self._max_at_once}")
        parts, left = [], size if size >= 0 else self._budget.most + 1
        while left:
            part = self._read_part(min(left, _LARGEST_READ))
            if not part:
                break
            self._budget.reach(self.tell())
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _read_part(self, size: int) -> bytes:
        try:
            part: bytes = self._file.read(size)
        except Exception as error:
            raise refusal(error, self._begin) from None
        return part

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to an offset counted from the beginning, or from here."""
        target = offset + (self.tell() if whence == os.SEEK_CUR else 0)
        self._budget.reach(target)
        try:
            return int(self._file.seek(target))
        except Exception as error:
            raise refusal(error, self._begin) from None

    def tell(self) -> int:
        try:
            return int(self._file.tell())
        except Exception as error:
            raise refusal(error, self._begin) from None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._file.close()
            self._packed.close()
        super().close()


def gunzipped(raw: bytes, where: str, most: int) -> bytes:
    """Return the content of a gzip file, of at most that many bytes and within its budget."""
    content = UnpackedFile(io.BytesIO(raw), where, "gzip", size=len(raw)).read(most + 1)
    if len(content) > most:
        raise BuddysimError(f"{where}: longer than {most} bytes when it is unpacked")
    return content


def packing_of(begin: bytes) -> str:
    """Return how a file is packed, by its first six bytes; empty: not at all."""
    return next((kind for magic, kind in _MAGIC.items() if begin.startswith(magic)), "")


def _opened(file: BinaryIO, kind: str) -> Any:
    if kind == "xz":
        import lzma

        return lzma.LZMAFile(file)
    if kind == "gzip":
        import gzip

        return gzip.GzipFile(fileobj=file)
    import bz2

    return bz2.BZ2File(file)
