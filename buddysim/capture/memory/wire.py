"""Messages of the preload library: one connection each, laid out as in preload/capture.h."""

from __future__ import annotations

import enum
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from buddysim.trace.format import PAGE_BYTES

_MESSAGE: Final = struct.Struct("<8sII11Q")
_ENTRY: Final = struct.Struct("<IIQQQII")
_FRAGMENT: Final = struct.Struct("<IIQQ")
_MAGIC: Final = b"BUDDYMEM"
_VERSION: Final = 2
_DATA, _ZERO, _UNREADABLE = 1, 2, 3


class Truncated(Exception):
    """The program's image ended before it had sent all of its memory."""


class MemoryKind(enum.IntEnum):
    """The origin of a range of memory."""

    HEAP = 1
    MAP = 2
    SHARED_MAP = 3
    STATIC = 4
    UNTRACKED = 5


class MessageKind(enum.IntEnum):
    """The type of a message."""

    HELLO = 1
    SNAPSHOT = 2
    FAREWELL = 3
    FAILED = 4
    CHILD = 5


@dataclass(frozen=True)
class Residence:
    """Private anonymous memory that a process had at a snapshot, in bytes.

    Parameters
    ----------
    resident : total bytes
    malloc_rest : bytes in glibc's heaps outside captured allocations: smaller allocations and freed memory
    unseen : bytes elsewhere outside captured allocations
    """

    resident: int = 0
    malloc_rest: int = 0
    unseen: int = 0


@dataclass(frozen=True)
class MessageHeader:
    """Head of a message.

    Parameters
    ----------
    position : calls, or nanoseconds of processor time; of CHILD, 1 if it has memory of its own
    wall_ns : ns since the library was loaded
    recorded, recorded_bytes : allocations of at least the minimum size so far
    problem : errno of the failed call
    cpu_ns : processor time of the process so far, ns; of a snapshot, 0
    residence : memory at a snapshot
    text : HELLO: path of the program; CHILD: path of a child's program, "" for a copy of itself
    """

    kind: MessageKind
    pid: int
    position: int
    wall_ns: int
    recorded: int
    recorded_bytes: int
    problem: int
    cpu_ns: int
    residence: Residence
    text: str


@dataclass(frozen=True)
class AllocationEntry:
    """One allocation in a snapshot; `frames` are return addresses, innermost first."""

    kind: MemoryKind
    id: int
    base: int
    bytes: int
    name: str
    frames: tuple[int, ...]


@dataclass(frozen=True)
class AllocationValues:
    """The received bytes of an allocation.

    Parameters
    ----------
    pages : numbers of the received pages of 8 KiB; None: all
    data : consecutive bytes of these pages, valid until the next read; only the allocation's last page can be short
    unreadable : bytes that could not be read, stored as zeros
    """

    pages: npt.NDArray[np.uint32] | None
    data: npt.NDArray[np.uint8]
    unreadable: int


class Connection:
    """Read one message."""

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

    def head(self) -> MessageHeader:
        magic, version, kind, *numbers = _MESSAGE.unpack(self._read(_MESSAGE.size))
        if magic != _MAGIC or version != _VERSION:
            raise Truncated
        pid, position, wall_ns, recorded, recorded_bytes, problem, cpu_ns = numbers[:7]
        residence = Residence(*numbers[7:10])
        text = self._read(numbers[10]).decode("utf-8", "replace")
        return MessageHeader(
            MessageKind(kind), pid, position, wall_ns, recorded, recorded_bytes, problem, cpu_ns, residence, text
        )

    def maps(self) -> str:
        """Read the program's memory mappings, as procfs lists them."""
        parts = []
        while size := struct.unpack("<I", self._read(4))[0]:
            parts.append(self._read(size))
        return b"".join(parts).decode("utf-8", "replace")

    def entries(self) -> list[AllocationEntry]:
        """Read the allocations of a snapshot."""
        entries: list[AllocationEntry] = []
        while True:
            kind, n_frames, number, base, size, name_bytes, _ = _ENTRY.unpack(self._read(_ENTRY.size))
            if not kind:
                return entries
            frames = struct.unpack(f"<{n_frames}Q", self._read(8 * n_frames))
            name = self._read(name_bytes).decode("utf-8", "replace")
            entries.append(AllocationEntry(MemoryKind(kind), number, base, size, name, frames))

    def values(self, entries: Sequence[AllocationEntry], whole_bytes: int) -> Iterator[AllocationValues]:
        """Yield the bytes of each entry; sampled pages of entries above `whole_bytes`."""
        buffer = np.empty(max((entry.bytes for entry in entries if entry.bytes <= whole_bytes), default=0), np.uint8)
        for entry in entries:
            yield self._whole(entry, buffer[: entry.bytes]) if entry.bytes <= whole_bytes else self._sampled(entry)
        if _ENTRY.unpack(self._read(_ENTRY.size))[0]:
            raise Truncated

    def _fragments(self) -> Iterator[tuple[int, int, int]]:
        while True:
            kind, _, offset, count = _FRAGMENT.unpack(self._read(_FRAGMENT.size))
            if not kind:
                return
            yield kind, offset, count

    def _whole(self, entry: AllocationEntry, data: npt.NDArray[np.uint8]) -> AllocationValues:
        view, unreadable = data.data, 0
        for kind, offset, count in self._fragments():
            if kind == _DATA:
                self._fill(view[offset : offset + count])
            elif kind == _ZERO:
                data[offset : offset + count] = 0
            else:
                unreadable += count
        return AllocationValues(None, data, unreadable)

    def _sampled(self, entry: AllocationEntry) -> AllocationValues:
        starts: dict[int, int] = {}  # of a page, in what was sent
        data, unreadable = bytearray(), 0
        for kind, offset, count in self._fragments():
            if kind == _UNREADABLE:
                unreadable += count
                continue
            page, inside = divmod(offset, PAGE_BYTES)
            if page not in starts:
                starts[page] = len(data)
                data += bytes(min(PAGE_BYTES, entry.bytes - page * PAGE_BYTES))
            if kind == _DATA:
                start = starts[page] + inside
                with memoryview(data) as view:
                    self._fill(view[start : start + count])
        return AllocationValues(np.array(list(starts), np.uint32), np.frombuffer(data, np.uint8), unreadable)
