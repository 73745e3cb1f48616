"""Reading a file of sections: its header, its sections in order, each with its checksums verified."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from zlib_ng.zlib_ng import crc32

from buddysim.base.errors import BuddysimError
from buddysim.base.inputs import open_descriptor
from buddysim.base.parsers.zstd import BEST_RATIO, decompressed, frame_bytes
from buddysim.base.sections.section_format import HEADER, SECTION, SectionFormat


class SectionHead(NamedTuple):
    """A section's type, the offset of its head in the file, its payload's length and checksum."""

    kind: bytes
    offset: int
    length: int
    crc: int

    @property
    def end(self) -> int:
        """Where its payload ends."""
        return self.offset + SECTION.size + self.length

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"section {self.kind.decode('ascii', 'replace')!r}"


class SectionFile:
    """A file of sections, open for reading. May be read from any thread.

    Reads with ``pread``: pages of a mapped file would count as resident memory of a run that streams it, and a file
    that shrinks under a mapping kills the process.

    Parameters
    ----------
    path : of the file
    section_format : of the file
    incomplete : take what an interrupted capture left, too

    Attributes
    ----------
    bytes : of the file
    version : of its format
    """

    def __init__(
        self, path: str | os.PathLike[str], section_format: SectionFormat, *, incomplete: bool = False
    ) -> None:
        self._fd = -1
        self.path, self.format = Path(path), section_format
        self._fd = open_descriptor(path, section_format.kind, incomplete=incomplete)
        try:
            self.bytes = os.fstat(self._fd).st_size
            self.version = self._read_header()
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
        raise self.format.error(self.path, section, int(offset), problem) from None

    def read(self, offset: int, n: int, section: str) -> bytes:
        """Exactly `n` bytes at `offset`."""
        if self._fd < 0:
            raise ValueError(f"the {self.format.kind} is closed")
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
        expected = self.format
        if self.bytes == 0:
            self.fail("header", 0, "the file is empty")
        if self.bytes < HEADER.size:
            self.fail("header", 0, f"the file has {self.bytes} bytes, {expected.what} at least {HEADER.size}")
        data = self.read(0, HEADER.size, "header")
        magic, version, flags, crc, zero = HEADER.unpack(data)
        if magic != expected.magic:
            self.fail("header", 0, f"begins with {magic!r}: expected {expected.magic!r}: not {expected.what}")
        if crc != crc32(data[:16]) or zero:
            self.fail("header", 0, "wrong checksum")
        if version not in (expected.version, *expected.old_versions) or flags:
            self.fail("header", 8, f"format version {version}.{flags}, this program reads up to {expected.version}.0")
        return int(version)

    def sections(self) -> Iterator[SectionHead]:
        """Yield the complete sections in order, up to the end of the file or an interrupted section."""
        offset = HEADER.size
        while offset + SECTION.size <= self.bytes:
            section = self.section_at(offset, "section")
            if section.end > self.bytes:
                return
            yield section
            offset = section.end + self.format.padding(section.length)

    def section_at(self, offset: int, where: str) -> SectionHead:
        """The section whose head is at `offset`; its payload may end beyond an interrupted file."""
        data = self.read(offset, SECTION.size, where)
        kind, zero, length, crc, head_crc = SECTION.unpack(data)
        if head_crc != crc32(data[:20]) or zero:
            self.fail(where, offset, "wrong checksum of the section's head")
        return SectionHead(kind, offset, length, crc)

    def payload(self, section: SectionHead, where: str) -> bytes:
        """A section's payload, its checksum verified."""
        end = section.end
        if end > self.bytes:
            self.fail(where, section.offset, f"{section.length} bytes, the file ends at {self.bytes}")
        data = self.read(end - section.length, section.length, where)
        padding = min(self.format.padding(section.length), self.bytes - end)  # an interrupted file may end in it
        if padding and any(self.read(end, padding, where)):
            self.fail(where, section.offset, "something other than zeros up to the next section")
        if crc32(data) != section.crc:
            self.fail(where, section.offset, "wrong checksum")
        return data

    def decompress(self, frame: bytes | memoryview, expected: int, section: str, offset: int) -> bytes:
        """A zstd frame that must hold exactly `expected` bytes."""
        if expected > BEST_RATIO * len(frame):
            self.fail(section, offset, f"{len(frame)} compressed bytes cannot hold {expected}")
        data = self._decompressed(frame, section, offset, expected, expected)
        if len(data) != expected:
            self.fail(section, offset, f"{len(data)} bytes decompressed: expected {expected}")
        return data

    def decompress_up_to(self, frame: bytes, most: int, section: str, offset: int) -> bytes:
        """A zstd frame that states how many bytes it holds, at most `most`."""
        return self._decompressed(frame, section, offset, 0, min(most, BEST_RATIO * len(frame)))

    def _decompressed(self, frame: bytes | memoryview, section: str, offset: int, least: int, most: int) -> bytes:
        begin = f"{self.path}: {section} at offset {offset}: cannot be decompressed"
        try:
            size = frame_bytes(frame, begin)
            if not least <= size <= most:
                expected = str(most) if least == most else f"at most {most}"
                self.fail(section, offset, f"a zstd frame of {size} bytes: expected {expected}")
            return decompressed(frame, begin)
        except self.format.error:
            raise
        except BuddysimError as error:
            self.fail(section, offset, f"cannot be decompressed: {str(error).removeprefix(f'{begin}: ')}")
