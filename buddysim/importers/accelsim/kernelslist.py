"""The list of commands of a traced run: copies, allocations and kernels in program order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.inputs import read_bytes
from buddysim.base.textfile import decoded
from buddysim.trace.format import MAX_ALLOCATION_BYTES

_ADDRESS_LIMIT = 1 << 57  # beyond any virtual address of a GPU
_COPIES: dict[str, Literal["htod", "dtoh"]] = {"MemcpyHtoD": "htod", "MemcpyDtoH": "dtoh"}
_MAX_LIST_BYTES = 1 << 28


@dataclass(frozen=True)
class KernelFile:
    """A kernel launch; `path` is its trace."""

    path: Path
    line: int


@dataclass(frozen=True)
class Copy:
    """A copy between host and device; `payload` is a file with the copied bytes, if the tracer wrote one."""

    kind: Literal["htod", "dtoh"]
    address: int
    bytes: int
    payload: Path | None
    line: int


@dataclass(frozen=True)
class Malloc:
    """A cudaMalloc."""

    address: int
    bytes: int
    line: int


@dataclass(frozen=True)
class Free:
    """A cudaFree."""

    address: int
    line: int


Command = KernelFile | Copy | Malloc | Free


@dataclass
class KernelsList:
    """Commands in order, and the unknown lines."""

    path: Path
    commands: list[Command] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


def read_kernelslist(path: Path) -> KernelsList:
    """Read a `kernelslist` or `kernelslist.g`; paths in it are relative to its folder."""
    kernels_list = KernelsList(path)
    for number, raw in enumerate(read_bytes(path, "kernelslist", _MAX_LIST_BYTES).split(b"\n"), 1):
        line = decoded(raw, f"{path}: line {number}: no list of kernels and copies").strip()
        if "\0" in line:
            raise BuddysimError(f"{path}: line {number}: not text: expected a list of kernels and copies")
        command, *fields = line.split(",")
        if not line:
            continue
        if command in _COPIES:
            kernels_list.commands.append(_copy(path, number, command, fields))
        elif command == "cudaMalloc":
            kernels_list.commands.append(Malloc(*_range(path, number, command, fields), number))
        elif command == "cudaFree" and len(fields) == 1:
            kernels_list.commands.append(Free(_address(path, number, command, fields[0]), number))
        elif line.startswith("kernel"):
            kernels_list.commands.append(KernelFile(_beside(path, number, line), number))
        else:
            kernels_list.ignored.append(command)
    if not any(isinstance(command, KernelFile) for command in kernels_list.commands):
        raise BuddysimError(f"{path}: names no kernel file: expected lines such as kernel-1.traceg")
    return kernels_list


def _copy(path: Path, number: int, command: str, fields: list[str]) -> Copy:
    address, n = _range(path, number, command, fields)
    payload = _beside(path, number, fields[2].strip()) if len(fields) > 2 and fields[2].strip() else None
    return Copy(_COPIES[command], address, n, payload, number)


def _beside(path: Path, number: int, name: str) -> Path:
    """Return the path of a file that the list names, in its folder or below."""
    if name.startswith("/") or ".." in Path(name).parts:
        raise BuddysimError(f"{path}: line {number}: {shortened(name)} is outside the list's folder")
    return path.parent / name


def _range(path: Path, number: int, command: str, fields: list[str]) -> tuple[int, int]:
    if len(fields) < 2 or not re.fullmatch(r"[0-9]{1,19}", fields[1].strip(), re.ASCII):
        raise BuddysimError(f"{path}: line {number}: expected {command},0xADDRESS,BYTES")
    address, n = _address(path, number, command, fields[0]), int(fields[1])
    if n > MAX_ALLOCATION_BYTES or address + n > _ADDRESS_LIMIT:
        raise BuddysimError(f"{path}: line {number}: {n} bytes at {address:#x} end beyond {_ADDRESS_LIMIT:#x}")
    return address, n


def _address(path: Path, number: int, command: str, text: str) -> int:
    if not re.fullmatch(r"(0[xX])?[0-9a-fA-F]{1,16}", text.strip(), re.ASCII):
        raise BuddysimError(f"{path}: line {number}: expected {command},0xADDRESS..., found {text.strip()[:40]!r}")
    address = int(text, 16)
    if address > _ADDRESS_LIMIT:
        raise BuddysimError(f"{path}: line {number}: the address {address:#x} is beyond {_ADDRESS_LIMIT:#x}")
    return address
