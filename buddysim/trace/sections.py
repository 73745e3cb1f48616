"""The sections of a trace file, numbered by the index at its end."""

from __future__ import annotations

import contextlib
import os
import struct
from typing import Any

import numpy as np
import numpy.typing as npt
from zlib_ng.zlib_ng import crc32

from buddysim.base.errors import TraceFileError
from buddysim.base.sections.section_file import SectionFile, SectionHead
from buddysim.base.sections.section_format import HEADER, SECTION
from buddysim.trace import format as fmt

_CHUNK_INDEX = struct.Struct("<8IQ")


class TraceSections(SectionFile):
    """A trace file as numbered sections.

    Attributes
    ----------
    index : one row of INDEX_DTYPE per section, in file order, without the index section
    interrupted_at : offset from which nothing could be read where the file has no index, else None
    """

    def __init__(self, path: str | os.PathLike[str], *, incomplete: bool = False) -> None:
        super().__init__(path, fmt.SECTIONS, incomplete=incomplete)
        try:
            self.interrupted_at: int | None = None
            index = self._read_index()
            self.index = self._scan() if index is None else index
        except BaseException:
            self.close()
            raise

    def _read_index(self) -> npt.NDArray[Any] | None:
        """The index that the footer names; None where the file has no footer."""
        at = self.bytes - fmt.FOOTER.size
        if at < HEADER.size:
            return None
        data = self.read(at, fmt.FOOTER.size, "footer")
        offset, size, crc, zero, magic = fmt.FOOTER.unpack(data)
        if magic != fmt.END_MAGIC or crc != crc32(data[:16]):
            return None
        if size != self.bytes or zero:
            self.fail("footer", at, f"says that the file has {size} bytes, it has {self.bytes}")
        section = self.section_at(offset, "index")
        if section.kind != fmt.INDEX:
            self.fail("index", offset, f"a section of type {section.kind!r}: expected {fmt.INDEX!r}")
        if section.end + self.format.padding(section.length) != at or section.length % fmt.INDEX_DTYPE.itemsize:
            self.fail("index", offset, f"{section.length} bytes, doesn't end where the footer begins")
        rows = np.frombuffer(self.payload(section, "index"), fmt.INDEX_DTYPE)
        lengths = rows["length"]
        if np.any(lengths > self.bytes):
            self.fail("index", offset, "lists a section that is longer than the file")
        starts = rows["offset"]
        ends = starts + (lengths + np.uint64(SECTION.size + 7)) // np.uint64(8) * np.uint64(8)
        expected = np.concatenate(([np.uint64(HEADER.size)], ends))
        actual = np.concatenate((starts, [np.uint64(offset)]))
        if not np.array_equal(expected, actual):
            row = int(np.argmax(expected != actual))
            self.fail("index", offset, f"row {row} is at {actual[row]}, the section before ends at {expected[row]}")
        return rows

    def _scan(self) -> npt.NDArray[Any]:
        """An index of the complete sections of a file that was not finished."""
        rows = []
        offset = HEADER.size
        with contextlib.suppress(TraceFileError):
            for section in self.sections():
                if section.kind == fmt.INDEX:
                    break
                payload = self.payload(section, "section")
                chunk = (0,) * 9
                if section.kind == fmt.CHUNK and section.length >= fmt.CHUNK_HEAD.size:
                    head = fmt.CHUNK_HEAD.unpack_from(payload)
                    chunk = (*head[:7], 0, head[10])
                row = struct.pack("<4sIQQ", section.kind, section.crc, section.offset, section.length)
                rows.append(row + _CHUNK_INDEX.pack(*chunk))
                offset = section.end + self.format.padding(section.length)
        self.interrupted_at = min(offset, self.bytes)
        return np.frombuffer(b"".join(rows), fmt.INDEX_DTYPE)

    def section_at(self, offset: int, where: str) -> SectionHead:
        """The section at `offset`, of a known type."""
        section = super().section_at(offset, where)
        if section.kind not in fmt.SECTION_TYPES:
            self.fail(where, offset, f"a section of type {section.kind!r}, unknown to format version {self.version}")
        return section

    def row_payload(self, row: int, where: str) -> bytes:
        """Payload of section `row` of the index, everything verified."""
        entry = self.index[row]
        section = self.section_at(int(entry["offset"]), where)
        if (section.kind, section.length, section.crc) != (entry["type"], entry["length"], entry["crc"]):
            self.fail(where, section.offset, "the index has another type, length or checksum")
        return self.payload(section, where)
