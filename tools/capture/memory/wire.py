"""What the preload library says: one connection per message, laid out as in preload/capture.h."""

from __future__ import annotations

import enum
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from tools.capture.memory.sampling import PAGE_BYTES

_MESSAGE: Final = struct.Struct("<8sIIQQQQQQ")
_ENTRY: Final = struct.Struct("<IIQQQII")
_PIECE: Final = struct.Struct("<IIQQ")
_MAGIC: Final = b"BUDDYMEM"
_VERSION: Final = 1
_DATA, _ZERO, _UNREADABLE = 1, 2, 3


class Truncated(Exception):
    """The image of the program went away before all of it had been sent."""


class Kind(enum.IntEnum):
    """How memory came to the program."""

    HEAP = 1
    MAP = 2
    SHARED_MAP = 3
    STATIC = 4


class Say(enum.IntEnum):
    """What a message is about."""

    HELLO = 1
    SNAPSHOT = 2
    FAREWELL = 3
    FAILED = 4


@dataclass(frozen=True)
class Message:
    """Head of a message.

    Parameters
    ----------
    position : of the run: calls counted, or nanoseconds of processor time
    wall_ns : since the library was loaded
    recorded, recorded_bytes : allocations that were large enough, so far
    problem : errno of what failed
    """

    say: Say
    pid: int
    position: int
    wall_ns: int
    recorded: int
    recorded_bytes: int
    problem: int


@dataclass
class Entry:
    """One allocation in a snapshot, with what was sent of it.

    Parameters
    ----------
    frames : return addresses, innermost first
    pages : numbers of the pages of 8 KiB that were sent; None: all
    data : their bytes one after the other; only the allocation's last page can be short
    unreadable : bytes that couldn't be read and stand as zeros
    """

    kind: Kind
    id: int
    base: int
    bytes: int
    name: str
    frames: tuple[int, ...]
    pages: npt.NDArray[np.uint32] | None = None
    data: npt.NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    unreadable: int = 0


class Connection:
    """Reads one message."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream

    def _read(self, count: int) -> bytes:
        data = bytearray(count)
        self._fill(memoryview(data))
        return bytes(data)

    def _fill(self, into: memoryview) -> None:
        while len(into):
            try:
                got = self._stream.recv_into(into, 0, socket.MSG_WAITALL)
            except ConnectionError:
                got = 0
            if not got:
                raise Truncated
            into = into[got:]

    def head(self) -> Message:
        magic, version, say, *numbers = _MESSAGE.unpack(self._read(_MESSAGE.size))
        if magic != _MAGIC or version != _VERSION:
            raise Truncated
        return Message(Say(say), *numbers)

    def maps(self) -> str:
        """/proc/self/maps of the program."""
        parts = []
        while size := struct.unpack("<I", self._read(4))[0]:
            parts.append(self._read(size))
        return b"".join(parts).decode("utf-8", "replace")

    def entries(self, whole_bytes: int) -> Iterator[Entry]:
        """The allocations; of those above `whole_bytes` sampled pages were sent."""
        while True:
            kind, n_frames, number, base, size, name_bytes, _ = _ENTRY.unpack(self._read(_ENTRY.size))
            if not kind:
                return
            frames = struct.unpack(f"<{n_frames}Q", self._read(8 * n_frames))
            name = self._read(name_bytes).decode("utf-8", "replace")
            entry = Entry(Kind(kind), number, base, size, name, frames)
            if size <= whole_bytes:
                self._whole(entry)
            else:
                self._sampled(entry)
            yield entry

    def _pieces(self) -> Iterator[tuple[int, int, int]]:
        while True:
            kind, _, offset, count = _PIECE.unpack(self._read(_PIECE.size))
            if not kind:
                return
            yield kind, offset, count

    def _whole(self, entry: Entry) -> None:
        entry.data = np.zeros(entry.bytes, np.uint8)
        view = memoryview(entry.data)
        for kind, offset, count in self._pieces():
            if kind == _DATA:
                self._fill(view[offset : offset + count])
            elif kind == _UNREADABLE:
                entry.unreadable += count

    def _sampled(self, entry: Entry) -> None:
        pages: dict[int, npt.NDArray[np.uint8]] = {}
        for kind, offset, count in self._pieces():
            if kind == _UNREADABLE:
                entry.unreadable += count
                continue
            page, start = divmod(offset, PAGE_BYTES)
            size = min(PAGE_BYTES, entry.bytes - page * PAGE_BYTES)
            data = pages.setdefault(page, np.zeros(size, np.uint8))
            if kind == _DATA:
                self._fill(memoryview(data)[start : start + count])
        entry.pages = np.array(sorted(pages), np.uint32)
        entry.data = np.concatenate([pages[int(page)] for page in entry.pages])
