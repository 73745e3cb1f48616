"""A bundle of an OpenCL capture: `meta.jsonl`, `warp.trace.xz` and snapshots of the buffers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.trace.format import MAX_ALLOCATION_BYTES, MAX_BLOCK_THREADS, MAX_GRID_BLOCKS
from buddysim.trace.model import Dim3, warps_per_block


@dataclass
class Buffer:
    """A buffer; it exists for ``launches[born:died]``."""

    address: int
    bytes: int
    born: int
    died: int | None = None


@dataclass(frozen=True)
class Launch:
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
    """What a bundle's folder holds."""

    path: Path
    buffers: list[Buffer] = field(default_factory=list)
    launches: dict[int, Launch] = field(default_factory=dict)
    recorded: dict[int, int] = field(default_factory=dict)  # launch -> operations, where any were recorded
    snapshots: dict[int, list[BufferFile]] = field(default_factory=dict)  # by the launch they come after

    @property
    def trace(self) -> Path:
        return self.path / "warp.trace.xz"


def read_bundle(path: Path) -> Bundle:
    """Read a bundle's description."""
    bundle = Bundle(path)
    meta = path / "meta.jsonl"
    if not meta.is_file() or not bundle.trace.is_file():
        raise BuddysimError(f"{path}: expected a folder with meta.jsonl and warp.trace.xz")
    live: dict[int, Buffer] = {}
    for number, line in enumerate(meta.read_text(errors="replace").splitlines(), 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
            _take(bundle, live, event)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BuddysimError(f"{meta}: line {number}: {error!r}, expected an event of the capture") from None
    for folder in sorted(path.glob("snap_*")):
        match = re.fullmatch(r"snap_([0-9]{1,9})", folder.name, re.ASCII)
        if match and folder.is_dir():
            bundle.snapshots[int(match.group(1))] = [_buffer_file(file) for file in sorted(folder.glob("*.bin"))]
    return bundle


def _take(bundle: Bundle, live: dict[int, Buffer], event: dict[str, Any]) -> None:
    launch = int(event["launch"])
    if not 0 <= launch < 1 << 32:
        raise ValueError(f"launch {launch}")
    match event["ev"]:
        case "alloc":
            buffer = Buffer(int(event["addr"]), int(event["size"]), launch)
            if not (0 < buffer.bytes <= MAX_ALLOCATION_BYTES and 0 <= buffer.address < 1 << 62) or buffer.address % 128:
                raise ValueError(f"a buffer of {buffer.bytes} bytes at {buffer.address}")
            bundle.buffers.append(buffer)
            live[buffer.address] = buffer
        case "free":
            live.pop(int(event["addr"])).died = launch
        case "kernel":
            grid, block = _dims(event["global"]), _dims(event["local"])
            if any(total % part for total, part in zip(grid, block, strict=True)):
                raise ValueError(f"a launch of {grid} threads in work-groups of {block}")
            groups = (grid[0] // block[0], grid[1] // block[1], grid[2] // block[2])
            if (
                groups[0] * groups[1] * groups[2] > MAX_GRID_BLOCKS
                or block[0] * block[1] * block[2] > MAX_BLOCK_THREADS
            ):
                raise ValueError(f"a launch of {groups} work-groups of {block}")
            bundle.launches[launch] = Launch(launch, str(event["name"]), groups, block)
        case "kernel_end":
            if int(event["warp_ops"]):
                bundle.recorded[launch] = int(event["warp_ops"])
        case other:
            raise ValueError(f"event {other!r}")


def _dims(values: Any) -> Dim3:
    x, y, z = (int(value) for value in values)
    if min(x, y, z) < 1:
        raise ValueError(f"dimensions {values}")
    return x, y, z


def _buffer_file(path: Path) -> BufferFile:
    match = re.fullmatch(r"([0-9]{1,19})(?:\.every([0-9]{1,6}))?\.bin", path.name, re.ASCII)
    if match is None or match.group(2) == "0":
        raise BuddysimError(f"{path}: expected a name such as 562949953421312.bin or 562949953421312.every64.bin")
    return BufferFile(path, int(match.group(1)), int(match.group(2) or 1))
