"""Messages of the traced program's process; `runtime/wire.h` is the other end and says what each holds."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

VERSION = 2
_FRAME = struct.Struct("<IIQ")
_MAX_BYTES = 1 << 32


class MessageType(IntEnum):
    """Types of messages."""

    HELLO = 1
    ALLOCATE = 2
    FREE = 3
    NAME = 4
    COPY = 5
    FILL = 6
    KERNEL = 7
    RECORDS = 8
    KERNEL_END = 9
    SNAPSHOT = 10
    CONTENTS = 11
    SNAPSHOT_END = 12
    UNTRACED = 13
    NOTE = 14
    COMPILE = 15
    DONE = 16
    NATIVE = 17


# Numbers of 64 bits before the text or the bytes.
_NUMBERS = {
    MessageType.HELLO: 2,
    MessageType.ALLOCATE: 3,
    MessageType.FREE: 1,
    MessageType.NAME: 1,
    MessageType.COPY: 4,
    MessageType.FILL: 3,
    MessageType.KERNEL: 10,
    MessageType.RECORDS: 4,
    MessageType.KERNEL_END: 2,
    MessageType.SNAPSHOT: 2,
    MessageType.CONTENTS: 2,
    MessageType.SNAPSHOT_END: 0,
    MessageType.UNTRACED: 1,
    MessageType.NOTE: 1,
    MessageType.COMPILE: 0,
    MessageType.DONE: 1,
    MessageType.NATIVE: 7,
}


@dataclass(frozen=True)
class ReceivedMessage:
    """One message."""

    type: MessageType
    numbers: tuple[int, ...]
    data: memoryview

    @property
    def text(self) -> str:
        return bytes(self.data).decode("utf-8", "replace")


def messages(connection: socket.socket) -> Iterator[ReceivedMessage]:
    """All complete messages up to the end of the connection."""
    while (frame := _read(connection, _FRAME.size)) is not None:
        kind, zero, n = _FRAME.unpack(frame)
        if zero or n > _MAX_BYTES or kind not in MessageType.__members__.values():
            raise ValueError(f"a message of type {kind} with {n} bytes")
        body = _read(connection, n)
        if body is None:
            return
        count = _NUMBERS[MessageType(kind)]
        if n < 8 * count:
            raise ValueError(f"a message of type {kind} with {n} bytes")
        yield ReceivedMessage(MessageType(kind), struct.unpack_from(f"<{count}Q", body), memoryview(body)[8 * count :])


def answer(connection: socket.socket, problem: bool, text: str) -> None:
    """Answer a request to compile."""
    data = text.encode()
    connection.sendall(struct.pack("<II", problem, len(data)) + data)


def _read(connection: socket.socket, n: int) -> bytearray | None:
    data = bytearray(n)
    view = memoryview(data)
    done = 0
    while done < n:
        try:
            got = connection.recv_into(view[done:])
        except ConnectionError:
            return None
        if not got:
            return None
        done += got
    return data
