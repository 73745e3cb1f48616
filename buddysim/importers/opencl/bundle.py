"""A bundle of an OpenCL capture: `meta.jsonl`, `warp.trace.xz` and snapshots of the buffers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.schema import Schema, checked_type
from buddysim.base.textfile import parse_json, read_text
from buddysim.trace.format import MAX_ALLOCATION_BYTES, MAX_BLOCK_THREADS, MAX_GRID_BLOCKS, MAX_TEXT_BYTES
from buddysim.trace.model import Dim3, warps_per_block

_MAX_BYTES = 1 << 30


def _short(text: str) -> str:
    if len(text.encode("utf-8", "replace")) > MAX_TEXT_BYTES:
        raise ValueError(f"a text of up to {MAX_TEXT_BYTES} bytes")
    return text


Address = Annotated[int, Field(ge=0, lt=1 << 62)]
Extent = Annotated[int, Field(ge=1, lt=1 << 32)]
Extents = Annotated[tuple[Extent, Extent, Extent], Field(strict=False)]


class _Event(Schema):
    """An event of the description; keys that are not read are passed over."""

    model_config = ConfigDict(extra="ignore")

    launch: Annotated[int, Field(ge=0, lt=1 << 32)]


class BundleAlloc(_Event):
    """A buffer is made."""

    ev: Literal["alloc"]
    addr: Address
    size: Annotated[int, Field(ge=1, le=MAX_ALLOCATION_BYTES)]


class BundleFree(_Event):
    """A buffer is given back."""

    ev: Literal["free"]
    addr: Address


class BundleKernel(_Event):
    """A kernel is launched."""

    ev: Literal["kernel"]
    name: Annotated[str, AfterValidator(_short)]
    grid: Annotated[Extents, Field(alias="global")]
    block: Annotated[Extents, Field(alias="local")]


class BundleKernelEnd(_Event):
    """A kernel ended."""

    ev: Literal["kernel_end"]
    warp_ops: Address


EVENT: TypeAdapter[BundleAlloc | BundleFree | BundleKernel | BundleKernelEnd] = TypeAdapter(
    Annotated[BundleAlloc | BundleFree | BundleKernel | BundleKernelEnd, Field(discriminator="ev")]
)


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


@within_budget
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
        where = f"{meta}: line {number}"
        _take(bundle, live, parse_json(line, where), where)
    for folder in sorted(path.glob("snap_*")):
        match = re.fullmatch(r"snap_([0-9]{1,9})", folder.name, re.ASCII)
        if match and folder.is_dir():
            bundle.snapshots[int(match.group(1))] = [_buffer_file(file) for file in sorted(folder.glob("*.bin"))]
    return bundle


def _take(bundle: Bundle, live: dict[int, BundleBuffer], content: object, where: str) -> None:
    event = checked_type(EVENT, content, where)
    launch = event.launch
    match event:
        case BundleAlloc():
            if event.addr % 128:
                raise BuddysimError(f"{where}: addr: expected a multiple of 128, got {event.addr}")
            buffer = BundleBuffer(event.addr, event.size, launch)
            bundle.buffers.append(buffer)
            live[buffer.address] = buffer
        case BundleFree():
            if event.addr not in live:
                raise BuddysimError(f"{where}: addr: expected the address of a buffer, got {event.addr}")
            live.pop(event.addr).free_launch = launch
        case BundleKernel():
            bundle.launches[launch] = BundleLaunch(launch, event.name, _groups(event, where), event.block)
        case BundleKernelEnd():
            if event.warp_ops:
                bundle.recorded[launch] = event.warp_ops


def _groups(event: BundleKernel, where: str) -> Dim3:
    """Return the grid of a launch."""
    (x, y, z), (bx, by, bz) = event.grid, event.block
    if x % bx or y % by or z % bz:
        raise BuddysimError(f"{where}: global: expected multiples of {list(event.block)}, got {list(event.grid)}")
    groups = (x // bx, y // by, z // bz)
    if prod(groups) > MAX_GRID_BLOCKS or prod(event.block) > MAX_BLOCK_THREADS:
        raise BuddysimError(
            f"{where}: global: expected at most {MAX_GRID_BLOCKS} work-groups of {MAX_BLOCK_THREADS} threads, got "
            f"{groups} of {event.block}"
        )
    return groups


def _buffer_file(path: Path) -> BufferFile:
    match = re.fullmatch(r"([0-9]{1,19})(?:\.every([0-9]{1,6}))?\.bin", path.name, re.ASCII)
    if match is None or match.group(2) == "0":
        raise BuddysimError(f"{path}: expected a name such as 562949953421312.bin or 562949953421312.every64.bin")
    return BufferFile(path, int(match.group(1)), int(match.group(2) or 1))
