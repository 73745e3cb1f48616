"""A bundle of an OpenCL capture: `meta.jsonl`, `warp.trace.xz` and snapshots of the buffers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.textfile import parse_json, read_text
from buddysim.trace.format import MAX_ALLOCATION_BYTES, MAX_BLOCK_THREADS, MAX_GRID_BLOCKS, MAX_TEXT_BYTES
from buddysim.trace.model import Dim3, warps_per_block

_MAX_BYTES = 1 << 30


@dataclass
class BundleBuffer:
    """A buffer; it exists for ``launches[alloc_launch:free_launch]``."""

    address: int
    bytes: int
    alloc_launch: int
    free_launch: int | None = None


@dataclass(frozen=True)
class BundleLaunch:
    """One kernel launch."""

    number: int
    name: str
    grid: Dim3
    block: Dim3

    @property
    def grid_blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def block_warps(self) -> int:
        return warps_per_block(self.block)


@dataclass(frozen=True)
class BufferFile:
    """A buffer's bytes after a launch: whole (`every` is 1), or its pages 0, every, 2 every, ..."""

    path: Path
    address: int
    every: int


@dataclass
class Bundle:
    """Contents of a bundle's folder."""

    path: Path
    buffers: list[BundleBuffer] = field(default_factory=list)
    launches: dict[int, BundleLaunch] = field(default_factory=dict)
    recorded: dict[int, int] = field(default_factory=dict)  # launch -> operations, where any were recorded
    snapshots: dict[int, list[BufferFile]] = field(default_factory=dict)  # by the launch they come after

    @property
    def trace(self) -> Path:
        return self.path / "warp.trace.xz"

    @property
    def files(self) -> list[Path]:
        """Paths of all files to read."""
        contents = (file.path for files in self.snapshots.values() for file in files)
        return [self.path / "meta.jsonl", self.trace, *contents]


def read_bundle(path: Path) -> Bundle:
    """Read a bundle's description."""
    bundle = Bundle(path)
    meta = path / "meta.jsonl"
    if not meta.is_file() or not bundle.trace.is_file():
        raise BuddysimError(f"{path}: expected a folder with meta.jsonl and warp.trace.xz")
    live: dict[int, BundleBuffer] = {}
    for number, line in enumerate(read_text(meta, "bundle's description", _MAX_BYTES).split("\n"), 1):
        if not line.strip():
            continue
        event = parse_json(line, f"{meta}: line {number}")
        try:
            _take(bundle, live, event)
        except KeyError as error:
            raise BuddysimError(f"{meta}: line {number}: the key {shortened(error.args[0])} is missing") from None
        except ValueError as error:
            raise BuddysimError(f"{meta}: line {number}: {error}: expected an event of the capture") from None
    for folder in sorted(path.glob("snap_*")):
        match = re.fullmatch(r"snap_([0-9]{1,9})", folder.name, re.ASCII)
        if match and folder.is_dir():
            bundle.snapshots[int(match.group(1))] = [_buffer_file(file) for file in sorted(folder.glob("*.bin"))]
    return bundle


def _take(bundle: Bundle, live: dict[int, BundleBuffer], event: Any) -> None:
    if not isinstance(event, dict):
        raise ValueError(f"{shortened(event)} is not an object")
    launch = _whole(event, "launch", 1 << 32)
    match event["ev"]:
        case "alloc":
            buffer = BundleBuffer(
                _whole(event, "addr", 1 << 62), _whole(event, "size", MAX_ALLOCATION_BYTES + 1), launch
            )
            if not buffer.bytes or buffer.address % 128:
                raise ValueError(f"a buffer of {buffer.bytes} bytes at {buffer.address}")
            bundle.buffers.append(buffer)
            live[buffer.address] = buffer
        case "free":
            address = _whole(event, "addr", 1 << 62)
            if address not in live:
                raise ValueError(f"there is no buffer at {address} to free")
            live.pop(address).free_launch = launch
        case "kernel":
            grid, block = _dims(event, "global"), _dims(event, "local")
            if any(total % part for total, part in zip(grid, block, strict=True)):
                raise ValueError(f"a launch of {grid} threads in work-groups of {block}")
            groups = (grid[0] // block[0], grid[1] // block[1], grid[2] // block[2])
            if (
                groups[0] * groups[1] * groups[2] > MAX_GRID_BLOCKS
                or block[0] * block[1] * block[2] > MAX_BLOCK_THREADS
            ):
                raise ValueError(f"a launch of {groups} work-groups of {block}")
            bundle.launches[launch] = BundleLaunch(launch, _text(event, "name"), groups, block)
        case "kernel_end":
            if operations := _whole(event, "warp_ops", 1 << 62):
                bundle.recorded[launch] = operations
        case other:
            raise ValueError(f"event {shortened(other)}")


def _whole(event: dict[str, Any], key: str, end: int) -> int:
    value = event[key]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < end:
        raise ValueError(f"{key}: {shortened(value)} is not an integer from 0 to {end - 1}")
    return value


def _text(event: dict[str, Any], key: str) -> str:
    value = event[key]
    if not isinstance(value, str) or len(value.encode("utf-8", "replace")) > MAX_TEXT_BYTES:
        raise ValueError(f"{key}: {shortened(value)} is not a text of up to {MAX_TEXT_BYTES} bytes")
    return value


def _dims(event: dict[str, Any], key: str) -> Dim3:
    values = event[key]
    if not isinstance(values, list) or len(values) != 3:
        raise ValueError(f"{key}: {shortened(values)} is not a list of three numbers")
    x, y, z = (_whole({key: value}, key, 1 << 32) for value in values)
    if min(x, y, z) < 1:
        raise ValueError(f"{key}: {values} has a dimension of nothing")
    return x, y, z


def _buffer_file(path: Path) -> BufferFile:
    match = re.fullmatch(r"([0-9]{1,19})(?:\.every([0-9]{1,6}))?\.bin", path.name, re.ASCII)
    if match is None or match.group(2) == "0":
        raise BuddysimError(f"{path}: expected a name such as 562949953421312.bin or 562949953421312.every64.bin")
    return BufferFile(path, int(match.group(1)), int(match.group(2) or 1))
