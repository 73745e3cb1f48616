"""The bytes around payloads: a file's header, a section's head."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from zlib_ng.zlib_ng import crc32

from buddysim.base.errors import SectionFileError

HEADER: Final = struct.Struct("<8sIIII")  # magic, version, 0, crc32 of the 16 bytes before, 0
SECTION: Final = struct.Struct("<4sIQII")  # type, 0, payload bytes, payload's crc32, crc32 of the 20 bytes before


@dataclass(frozen=True)
class SectionFormat:
    """A kind of file that consists of sections.

    Attributes
    ----------
    what : for messages, with its article: ``"a trace file"``
    magic : its first 8 bytes
    version : of files that are written
    error : what a file that can't be read raises
    old_versions : versions that are read too
    alignment : a section begins at a multiple of so many bytes; zeros are padding
    """

    what: str
    magic: bytes
    version: int
    error: type[SectionFileError]
    old_versions: frozenset[int] = frozenset()
    alignment: int = 1

    @property
    def kind(self) -> str:
        """The kind without its article."""
        return self.what.partition(" ")[2]

    def header(self) -> bytes:
        """The first bytes of a file."""
        head = HEADER.pack(self.magic, self.version, 0, 0, 0)[:16]
        return head + struct.pack("<II", crc32(head), 0)

    def padding(self, length: int) -> int:
        """Zero bytes that follow a section of `length` payload bytes."""
        return -length % self.alignment

    def section(self, kind: bytes, payload: bytes) -> bytes:
        """A section with its head and padding."""
        head = SECTION.pack(kind, 0, len(payload), crc32(payload), 0)[:20]
        return head + struct.pack("<I", crc32(head)) + payload + bytes(self.padding(len(payload)))
