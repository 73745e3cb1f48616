"""The header of a kernel's trace file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from buddysim.base.errors import BuddysimError
from buddysim.trace.format import MAX_BLOCK_THREADS, MAX_GRID_BLOCKS
from buddysim.trace.model import Dim3, warps_per_block

OLDEST_VERSION, NEWEST_VERSION = 1, 6


@dataclass(frozen=True)
class KernelHeader:
    """The header of a kernel's file. Addresses are bases of the generic windows, 0 where absent."""

    name: str
    grid: Dim3
    block: Dim3
    shared_memory_bytes: int
    registers: int
    binary_version: int
    stream: int
    shared_base: int
    local_base: int
    version: int
    line_info: bool

    @property
    def grid_blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def block_warps(self) -> int:
        return warps_per_block(self.block)


def parse_header(path: str, lines: list[str]) -> KernelHeader:
    """Read the lines before the first one that begins with ``#``.

    Parameters
    ----------
    path : of the file, for messages
    lines : ``-key = value`` lines and blank ones
    """
    values: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        key, equals, value = line.partition("=")
        if not line.startswith("-") or not equals:
            raise BuddysimError(f"{path}: line {number}: expected '-key = value', found {_excerpt(line)}")
        values[key[1:].strip()] = value.strip()

    def number_of(key: str, default: int | None = None, most: int = 2**32 - 1) -> int:
        text = values.get(key)
        if text is None:
            if default is None:
                raise BuddysimError(f"{path}: header: '-{key}' is missing")
            return default
        if not re.fullmatch(r"[0-9]{1,20}|0[xX][0-9a-fA-F]{1,16}", text, re.ASCII):
            raise BuddysimError(f"{path}: header: '-{key}' is {_excerpt(text)}: expected a number")
        value = int(text, 16 if text[:2] in ("0x", "0X") else 10)
        if value > most:
            raise BuddysimError(f"{path}: header: '-{key}' is {value}: expected at most {most}")
        return value

    def dims_of(key: str, most: int) -> Dim3:
        text = values.get(key)
        if text is None:
            raise BuddysimError(f"{path}: header: '-{key}' is missing")
        match = re.fullmatch(r"\(\s*([0-9]{1,10})\s*,\s*([0-9]{1,10})\s*,\s*([0-9]{1,10})\s*\)", text, re.ASCII)
        if match is None:
            raise BuddysimError(f"{path}: header: '-{key}' is {_excerpt(text)}: expected (x,y,z)")
        x, y, z = (int(part) for part in match.groups())
        if min(x, y, z) < 1 or max(x, y, z) >= 2**32 or x * y * z > most:
            raise BuddysimError(f"{path}: header: '-{key}' is {text}: expected numbers from 1, product up to {most}")
        return x, y, z

    return KernelHeader(
        name=values.get("kernel name", "") or "unnamed",
        grid=dims_of("grid dim", MAX_GRID_BLOCKS),
        block=dims_of("block dim", MAX_BLOCK_THREADS),
        shared_memory_bytes=number_of("shmem", 0),
        registers=number_of("nregs", 0),
        binary_version=number_of("binary version", 70, 9999),
        stream=number_of("cuda stream id", 0, 2**64 - 1),
        shared_base=number_of("shmem base_addr", 0, 2**63 - 1),
        local_base=number_of("local mem base_addr", 0, 2**63 - 1),
        version=_version(path, values.get("accelsim tracer version", str(OLDEST_VERSION))),
        line_info=number_of("enable lineinfo", 0, 1) == 1,
    )


def _version(path: str, text: str) -> int:
    """Return the major version of the tracer: 1 for 1.2."""
    match = re.fullmatch(r"([0-9]{1,4})(\.[0-9]+)*", text, re.ASCII)
    version = int(match.group(1)) if match else 0
    if not OLDEST_VERSION <= version <= NEWEST_VERSION:
        raise BuddysimError(
            f"{path}: header: tracer version {_excerpt(text)}: expected {OLDEST_VERSION} to {NEWEST_VERSION}"
        )
    return version


def _excerpt(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= 40 else text[:37] + "...")
