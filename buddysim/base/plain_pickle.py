"""Reads a pickle that holds lists, tuples, dictionaries, strings and numbers alone.

Nothing of the file runs: an opcode that would import, call or construct anything is refused, by its name. What a file
can cost is bounded by its size and by the number of objects: an index into the memo reserves nothing, integers have at
most 64 bytes, and keys are strings, so that no crafted key makes a dictionary slow. Lists may be shared, and contain
themselves; a reader has to count what it visits.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pickletools import opcodes
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.inputs import read_bytes

MAX_OBJECTS = 30_000_000
"""Objects and references in a file, at most."""
_MAX_INTEGER = 64
_MAX_DEPTH = 1000
#: Zeros behind the file, so that a byte at its end can be read without a look at its length.
_PADDING = 16
_NAMES = {ord(one.code): one.name for one in opcodes}
_DOUBLE = struct.Struct(">d")


def read_plain_pickle(path: str | os.PathLike[str], what: str, max_bytes: int) -> Any:
    """Return what a pickle holds.

    Parameters
    ----------
    path : the file
    what : the kind of file, for messages: ``"memory snapshot"``
    max_bytes : its maximum size

    Raises
    ------
    BuddysimError
        where it can't be read, isn't a pickle, or holds anything but plain containers, strings and numbers
    """
    try:
        return plain_pickle(read_bytes(path, what, max_bytes))
    except ValueError as error:
        raise BuddysimError(f"{os.fspath(path)}: not a {what}: {error}") from None


def plain_pickle(data: bytes) -> Any:
    """Return what a pickle holds; a ValueError of one line where it isn't plain or isn't a pickle."""
    reader = _PickleMachine(data)
    try:
        return reader.run()
    except BrokenPickleError:
        raise ValueError(f"byte {reader.position}: broken pickle") from None


class BrokenPickleError(Exception):
    """An opcode for which bytes, objects or marks are missing."""


class _Memo(dict[int, Any]):
    def __missing__(self, index: int) -> Any:
        raise BrokenPickleError


class _PickleMachine:
    """The stack machine of pickles, with the plain opcodes of protocols 1 to 5 alone."""

    def __init__(self, data: bytes) -> None:
        self.data = data + bytes(_PADDING)
        self.position = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo = _Memo()
        self.rare: dict[int, Callable[[], None]] = {
            0x80: self._protocol,
            0x95: self._frame,
            0x28: self._mark,
            0x30: self._pop,
            0x31: self._pop_mark,
            0x4E: lambda: self.stack.append(None),
            0x88: lambda: self.stack.append(True),
            0x89: lambda: self.stack.append(False),
            0x49: self._text_integer,
            0x4C: self._text_integer,
            0x47: self._float,
            0x8B: lambda: self._long(4),
            0x8A: lambda: self._long(1),
            0x58: lambda: self._string(4),
            0x8D: lambda: self._string(8),
            0x5D: lambda: self.stack.append([]),
            0x7D: lambda: self.stack.append({}),
            0x29: lambda: self.stack.append(()),
            0x61: self._append,
            0x65: self._append_all,
            0x6C: lambda: self.stack.append(self._since_mark()),
            0x74: lambda: self.stack.append(tuple(self._since_mark())),
            0x85: lambda: self._tuple(1),
            0x86: lambda: self._tuple(2),
            0x87: lambda: self._tuple(3),
            0x73: self._set_item,
            0x75: self._set_all,
            0x64: self._dictionary,
            0x72: lambda: self._put(self._number(4)),
        }

    def run(self) -> Any:
        """Run to the end: the most frequent opcodes here, the others by a table."""
        data, stack, memo, rare = self.data, self.stack, self.memo, self.rare
        position = count = 0
        while True:
            opcode = data[position]
            position += 1
            count += 1
            if opcode == 0x68:  # BINGET
                stack.append(memo[data[position]])
                position += 1
            elif opcode == 0x4B:  # BININT1
                stack.append(data[position])
                position += 1
            elif opcode == 0x94:  # MEMOIZE
                if not stack:
                    raise BrokenPickleError
                memo[len(memo)] = stack[-1]
            elif opcode == 0x8C:  # SHORT_BINUNICODE
                end = position + 1 + data[position]
                stack.append(_text(data, position + 1, end))
                position = end
            elif opcode == 0x6A:  # LONG_BINGET
                stack.append(memo[int.from_bytes(_part(data, position, position + 4), "little")])
                position += 4
            elif opcode == 0x71:  # BINPUT
                memo[data[position]] = _last(stack)
                position += 1
            elif opcode == 0x4A:  # BININT
                stack.append(int.from_bytes(_part(data, position, position + 4), "little", signed=True))
                position += 4
            elif opcode == 0x4D:  # BININT2
                stack.append(int.from_bytes(_part(data, position, position + 2), "little"))
                position += 2
            elif opcode == 0x2E:  # STOP
                if len(stack) != 1 or self.marks:
                    raise BrokenPickleError
                return stack[0]
            else:
                self.position = position
                handler = rare.get(opcode)
                if position > len(data) - _PADDING:
                    raise BrokenPickleError
                if handler is None:
                    name = _NAMES.get(opcode, f"0x{opcode:02x}")
                    raise ValueError(f"byte {position - 1}: {name}: expected plain lists, texts and numbers")
                handler()
                position = self.position
            if count > MAX_OBJECTS:
                raise ValueError(f"more than {MAX_OBJECTS} objects")

    def _number(self, size: int) -> int:
        value = int.from_bytes(_part(self.data, self.position, self.position + size), "little")
        self.position += size
        return value

    def _line(self) -> str:
        end = self.data.find(b"\n", self.position, self.position + 80)
        if end < 0:
            raise BrokenPickleError
        line = _decoded(self.data[self.position : end])
        self.position = end + 1
        return line

    def _protocol(self) -> None:
        if self._number(1) > 5:
            raise BrokenPickleError

    def _frame(self) -> None:
        if self._number(8) > len(self.data) - _PADDING - self.position:
            raise BrokenPickleError

    def _mark(self) -> None:
        if len(self.marks) >= _MAX_DEPTH:
            raise ValueError(f"byte {self.position}: nested more than {_MAX_DEPTH} deep")
        self.marks.append(len(self.stack))

    def _pop(self) -> None:
        if self.marks and self.marks[-1] == len(self.stack):
            self.marks.pop()
        else:
            _popped(self.stack)

    def _pop_mark(self) -> None:
        self._since_mark()

    def _since_mark(self) -> list[Any]:
        mark = _popped(self.marks)
        items = self.stack[mark:]
        del self.stack[mark:]
        return items

    def _text_integer(self) -> None:
        line = self._line()
        if line in ("00", "01"):
            self.stack.append(line == "01")
            return
        digits = line.removesuffix("L")
        if not (digits.isascii() and digits.removeprefix("-").isdecimal()):
            raise BrokenPickleError
        self.stack.append(int(digits))

    def _float(self) -> None:
        self.stack.append(_DOUBLE.unpack(_part(self.data, self.position, self.position + 8))[0])
        self.position += 8

    def _long(self, size: int) -> None:
        length = self._number(size)
        if length > _MAX_INTEGER:
            raise ValueError(f"byte {self.position}: an integer of {length} bytes: expected at most {_MAX_INTEGER}")
        raw = _part(self.data, self.position, self.position + length)
        self.position += length
        self.stack.append(int.from_bytes(raw, "little", signed=True))

    def _string(self, size: int) -> None:
        length = self._number(size)
        self.stack.append(_text(self.data, self.position, self.position + length))
        self.position += length

    def _tuple(self, length: int) -> None:
        if len(self.stack) < length:
            raise BrokenPickleError
        self.stack[-length:] = [tuple(self.stack[-length:])]

    def _append(self) -> None:
        item = _popped(self.stack)
        _container(self.stack, list).append(item)

    def _append_all(self) -> None:
        items = self._since_mark()
        _container(self.stack, list).extend(items)

    def _set_item(self) -> None:
        value, key = _popped(self.stack), _popped(self.stack)
        _fill(_container(self.stack, dict), [key, value])

    def _set_all(self) -> None:
        items = self._since_mark()
        _fill(_container(self.stack, dict), items)

    def _dictionary(self) -> None:
        items = self._since_mark()
        self.stack.append({})
        _fill(self.stack[-1], items)

    def _put(self, index: int) -> None:
        self.memo[index] = _last(self.stack)


def _part(data: bytes, start: int, end: int) -> bytes:
    if end > len(data) - _PADDING:
        raise BrokenPickleError
    return data[start:end]


def _text(data: bytes, start: int, end: int) -> str:
    return _decoded(_part(data, start, end))


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise BrokenPickleError from None


def _last(stack: list[Any]) -> Any:
    if not stack:
        raise BrokenPickleError
    return stack[-1]


def _popped(stack: list[Any]) -> Any:
    if not stack:
        raise BrokenPickleError
    return stack.pop()


def _container(stack: list[Any], kind: type[Any]) -> Any:
    if type(_last(stack)) is not kind:
        raise BrokenPickleError
    return stack[-1]


def _fill(into: dict[Any, Any], items: list[Any]) -> None:
    if len(items) % 2:
        raise BrokenPickleError
    for index in range(0, len(items), 2):
        key = items[index]
        if type(key) is not str:
            raise ValueError(f"a key of type {type(key).__name__}: expected a text")
        into[key] = items[index + 1]
