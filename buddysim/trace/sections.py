"""The sections of a trace file: where they are, their bytes, their checksums. Nothing here knows what they mean."""

from __future__ import annotations

import os
import struct
import threading
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import zstandard
from zlib_ng.zlib_ng import crc32

from buddysim.base.errors import TraceFileError
from buddysim.base.inputs import open_descriptor
from buddysim.trace import format as fmt

ZSTD_BEST_RATIO = 1 << 15  # a block of 128 KiB takes at least 4 bytes
_HEAD_BYTES = fmt.SECTION.size
_CHUNK_INDEX = struct.Struct("<8IQ")


class SectionFile:
    """A trace file as numbered sections.

    Reads with ``pread``: pages of a mapped file would count as resident memory of a run that streams it, and a file
    that shrinks under a mapping kills the process.

    Parameters
    ----------
    path : of the file
    incomplete : take what an interrupted capture left, too

    Attributes
    ----------
    index : one row of INDEX_DTYPE per section, in file order, without the index section
    interrupted_at : offset from which nothing could be read where the file has no index, else None
    """

    def __init__(self, path: str | os.PathLike[str], *, incomplete: bool = False) -> None:
        self._fd = -1
        self.path = Path(path)
        self._local = threading.local()
        self._fd = open_descriptor(path, "trace file", incomplete=incomplete)
        try:
            self.bytes = os.fstat(self._fd).st_size
            self.version = self._read_header()
            self.interrupted_at: int | None = None
            index = self._read_index()
            self.index = self._scan() if index is None else index
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()

    def fail(self, section: str, offset: int, problem: str) -> NoReturn:
        raise TraceFileError(self.path, section, int(offset), problem) from None

    def read(self, offset: int, n: int, section: str) -> bytes:
        """Exactly `n` bytes at `offset`."""
        if self._fd < 0:
            raise ValueError("the trace file is closed")
        if offset + n > self.bytes:
            self.fail(section, offset, f"needs {n} bytes, the file ends at {self.bytes}")
        try:
            data = os.pread(self._fd, n, offset)
            while len(data) < n:  # one call gives at most 2 GiB
                more = os.pread(self._fd, n - len(data), offset + len(data))
                if not more:
                    self.fail(section, offset, "the file became shorter while it was read")
                data += more
        except OSError as error:
            self.fail(section, offset, f"cannot be read: {error.strerror}")
        return data

    def _read_header(self) -> int:
        if self.bytes == 0:
            self.fail("header", 0, "the file is empty")
        if self.bytes < fmt.HEADER.size:
            self.fail("header", 0, f"the file has {self.bytes} bytes, a trace file at least {fmt.HEADER.size}")
        data = self.read(0, fmt.HEADER.size, "header")
        magic, version, flags, crc, zero = fmt.HEADER.unpack(data)
        if magic != fmt.MAGIC:
            self.fail("header", 0, f"begins with {magic!r}: expected {fmt.MAGIC!r}: not a trace file")
        if crc != crc32(data[:16]) or zero:
            self.fail("header", 0, "wrong checksum")
        if version not in (fmt.FORMAT_VERSION, *fmt.OLD_VERSIONS) or flags:
            self.fail("header", 8, f"format version {version}.{flags}, this program reads up to {fmt.FORMAT_VERSION}.0")
        return int(version)

    # -- index --------------------------------------------------------------------------------------------------------

    def _read_index(self) -> npt.NDArray[Any] | None:
        """The index that the footer names; None where the file has no footer."""
        at = self.bytes - fmt.FOOTER.size
        if at < fmt.HEADER.size:
            return None
        data = self.read(at, fmt.FOOTER.size, "footer")
        offset, size, crc, zero, magic = fmt.FOOTER.unpack(data)
        if magic != fmt.END_MAGIC or crc != crc32(data[:16]):
            return None
        if size != self.bytes or zero:
            self.fail("footer", at, f"says that the file has {size} bytes, it has {self.bytes}")
        kind, length, crc = self.section_head(offset, "index")
        if kind != fmt.INDEX:
            self.fail("index", offset, f"a section of type {kind!r}: expected {fmt.INDEX!r}")
        if offset + _HEAD_BYTES + length + fmt.padding(length) != at or length % fmt.INDEX_DTYPE.itemsize:
            self.fail("index", offset, f"{length} bytes, doesn't end where the footer begins")
        rows = np.frombuffer(self.payload(offset, length, crc, "index"), fmt.INDEX_DTYPE)
        lengths = rows["length"]
        if np.any(lengths > self.bytes):
            self.fail("index", offset, "lists a section that is longer than the file")
        starts = rows["offset"]
        ends = starts + (lengths + np.uint64(_HEAD_BYTES + 7)) // np.uint64(8) * np.uint64(8)
        expected = np.concatenate(([np.uint64(fmt.HEADER.size)], ends))
        actual = np.concatenate((starts, [np.uint64(offset)]))
        if not np.array_equal(expected, actual):
            row = int(np.argmax(expected != actual))
            self.fail("index", offset, f"row {row} is at {actual[row]}, the section before ends at {expected[row]}")
        return rows

    def _scan(self) -> npt.NDArray[Any]:
        """An index of the complete sections of a file that was not finished."""
        rows = []
        offset = fmt.HEADER.size
        while offset + _HEAD_BYTES <= self.bytes:
            try:
                kind, length, crc = self.section_head(offset, "section")
                if kind == fmt.INDEX:
                    break
                payload = self.payload(offset, length, crc, "section")
            except TraceFileError:
                break
            chunk = (0,) * 9
            if kind == fmt.CHUNK and length >= fmt.CHUNK_HEAD.size:
                head = fmt.CHUNK_HEAD.unpack_from(payload)
                chunk = (*head[:7], 0, head[10])
            rows.append(struct.pack("<4sIQQ", kind, crc, offset, length) + _CHUNK_INDEX.pack(*chunk))
            offset += _HEAD_BYTES + length + fmt.padding(length)
        self.interrupted_at = min(offset, self.bytes)
        return np.frombuffer(b"".join(rows), fmt.INDEX_DTYPE)

    # -- sections -----------------------------------------------------------------------------------------------------

    def section_head(self, offset: int, section: str) -> tuple[bytes, int, int]:
        """(type, payload bytes, payload's checksum) of the section at `offset`; its payload is within the file."""
        data = self.read(offset, _HEAD_BYTES, section)
        kind, zero, length, crc, head_crc = fmt.SECTION.unpack(data)
        if head_crc != crc32(data[:20]):
            self.fail(section, offset, "wrong checksum of the section's head")
        if kind not in fmt.SECTION_TYPES or zero:
            self.fail(section, offset, f"a section of type {kind!r}, unknown to format version {self.version}")
        if length > self.bytes - offset - _HEAD_BYTES:
            self.fail(section, offset, f"{length} bytes, the file ends at {self.bytes}")
        return kind, length, crc

    def payload(self, offset: int, length: int, crc: int, section: str) -> bytes:
        """Payload of the section at `offset`, its checksum verified."""
        start = offset + _HEAD_BYTES
        end = start + length
        data = self.read(start, length, section)
        padding = min(fmt.padding(length), self.bytes - end)  # an interrupted file may end in the padding
        if padding and any(self.read(end, padding, section)):
            self.fail(section, offset, "something other than zeros up to the next section")
        if crc32(data) != crc:
            self.fail(section, offset, "wrong checksum")
        return data

    def row_payload(self, row: int, section: str) -> bytes:
        """Payload of section `row` of the index, everything verified."""
        entry = self.index[row]
        offset = int(entry["offset"])
        kind, length, crc = self.section_head(offset, section)
        if kind != entry["type"] or length != entry["length"] or crc != entry["crc"]:
            self.fail(section, offset, "the index has another type, length or checksum")
        return self.payload(offset, length, crc, section)

    def decompress(self, frame: bytes | memoryview, expected: int, section: str, offset: int) -> bytes:
        """A zstd frame that must hold exactly `expected` bytes. May be called from any thread."""
        if expected > ZSTD_BEST_RATIO * len(frame):
            self.fail(section, offset, f"{len(frame)} compressed bytes cannot hold {expected}")
        decompressor = getattr(self._local, "decompressor", None)
        if decompressor is None:
            decompressor = self._local.decompressor = zstandard.ZstdDecompressor()
        try:
            size = zstandard.frame_content_size(frame)
            if size != expected:
                self.fail(section, offset, f"a zstd frame of {size} bytes: expected {expected}")
            data: bytes = decompressor.decompress(frame, allow_extra_data=False)
        except (zstandard.ZstdError, ValueError) as error:
            self.fail(section, offset, f"cannot be decompressed: {error}")
        if len(data) != expected:
            self.fail(section, offset, f"{len(data)} bytes decompressed: expected {expected}")
        return data
