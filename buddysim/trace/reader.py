"""Reading a trace file: everything small at once, chunks and values on demand."""

from __future__ import annotations

import hashlib
import os
import struct
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from buddysim.base.budget import within_budget
from buddysim.base.sections.section_format import HEADER
from buddysim.trace import format as fmt
from buddysim.trace.codec import decode_columns
from buddysim.trace.data_values import SizeMap, Snapshot, ValueBlocks
from buddysim.trace.live import LiveAllocations
from buddysim.trace.model import (
    Allocation,
    Chunk,
    ChunkRef,
    Dim3,
    Event,
    KernelLaunch,
    Memcpy,
    Memset,
    Provenance,
    warps_per_block,
)
from buddysim.trace.sections import TraceSections
from buddysim.trace.shipped import trace_path

_CHUNK_FIELDS = (
    "offset",
    "first_block",
    "n_blocks",
    "n_warps",
    "n_ops",
    "n_lines",
    "length",
    "memory_instructions",
    "warp_instructions",
)


class ChunkList(Sequence[ChunkRef]):
    """A kernel's chunks, made from the file's index on request."""

    def __init__(self, rows: npt.NDArray[Any]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, i: int) -> ChunkRef: ...
    @overload
    def __getitem__(self, i: slice) -> ChunkList: ...
    def __getitem__(self, i: int | slice) -> ChunkRef | ChunkList:
        if isinstance(i, slice):
            return ChunkList(self._rows[i])
        row = self._rows[i]
        return ChunkRef(*(int(row[name]) for name in _CHUNK_FIELDS))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass
class Kernel:
    """A recorded launch. Counts are of the recorded blocks, which are all but the ones that did nothing."""

    index: int
    name: str
    launch_index: int  # launches that the program made before it
    grid: Dim3
    block: Dim3
    registers: int  # per thread, 0 = not known
    shared_memory_bytes: int  # per block
    stream: int
    event: int  # index in the trace's events
    code_bytes: int = 0  # 0 = not known
    warp_instructions: int = 0
    memory_instructions: int = 0
    line_accesses: int = 0
    n_blocks: int = 0
    complete: bool = True  # False for the last kernel of an interrupted file
    chunks: Sequence[ChunkRef] = field(default_factory=list, repr=False)

    @property
    def grid_blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def warps_per_block(self) -> int:
        return warps_per_block(self.block)


class Trace:
    """An open trace file; a context manager. Safe to read from several threads. The parameters are `open_trace`'s."""

    def __init__(self, path: str | os.PathLike[str], *, incomplete: bool = False) -> None:
        self.file = TraceSections(path, incomplete=incomplete)
        try:
            self.path: Path = self.file.path
            self.format_version = self.file.version
            self.interrupted = self.file.interrupted_at is not None
            self.provenance = Provenance("")
            self.allocations: list[Allocation] = []
            self.events: list[Event] = []
            self.event_offsets: list[int] = []
            self.kernels: list[Kernel] = []
            self.snapshots: list[Snapshot] = []
            self.size_maps: list[SizeMap] = []
            self._kernel_offsets: list[int] = []
            self._live = LiveAllocations()
            self._read_sections()
        except BaseException:
            self.file.close()
            raise

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.file.close()

    @property
    def fingerprint(self) -> str:
        """SHA-256 over type, length and checksum of every section but the provenance, as hex."""
        rows = self.file.index[self.file.index["type"] != fmt.PROVENANCE]
        packed = np.empty(len(rows), [("type", "S4"), ("length", "<u8"), ("crc", "<u4")])
        for name in ("type", "length", "crc"):
            packed[name] = rows[name]
        return hashlib.sha256(packed.tobytes()).hexdigest()

    # -- opening ------------------------------------------------------------------------------------------------------

    def _read_sections(self) -> None:
        file = self.file
        rows = file.index
        values = ValueBlocks(file, self.allocations, self.snapshots)
        kernel_rows: list[tuple[int, int]] = []  # of each kernel: its row, that of its end
        ends: list[tuple[int, ...]] = []
        if len(rows) and rows["type"][0] != fmt.PROVENANCE:
            file.fail("provenance", HEADER.size, f"the first section is {rows['type'][0]!r}")
        for row in map(int, np.flatnonzero(rows["type"] != fmt.CHUNK)):
            kind = bytes(rows["type"][row])
            offset = int(rows["offset"][row])
            if kind == fmt.CONTENTS:
                values.add_contents(row)
                continue
            if kind == fmt.SIZE_MAP:
                values.add_size_map(row)
                continue
            in_kernel = len(kernel_rows) > len(ends)
            if in_kernel and kind not in (fmt.KERNEL_END, fmt.SNAPSHOT):
                file.fail(_name(kind), offset, f"inside kernel {len(kernel_rows) - 1}, which has no end before it")
            payload = file.row_payload(row, _name(kind))
            if kind == fmt.KERNEL_END:
                if not in_kernel:
                    file.fail(_name(kind), offset, "there is no kernel to end")
                ends.append(self._unpack(fmt.KERNEL_END_BODY, payload, _name(kind), offset, exact=True))
                kernel_rows[-1] = (kernel_rows[-1][0], row)
            elif kind == fmt.KERNEL:
                kernel_rows.append((row, len(rows)))
                self._kernel_offsets.append(offset)
                self._add_kernel(payload, offset)
            elif kind == fmt.PROVENANCE:
                if row:
                    file.fail("provenance", offset, "a second one")
                self.provenance = self._read_provenance(payload, offset)
            else:
                self._add_small(kind, payload, offset)
        if len(ends) < len(kernel_rows):
            if not self.interrupted:
                file.fail("kernel", self._kernel_offsets[-1], f"kernel {len(ends)} has no end")
            self.kernels[-1].complete = False
        self._count_chunks(kernel_rows, ends)
        self.size_maps = values.finish(self.interrupted)

    def _unpack(
        self, layout: struct.Struct, payload: bytes, section: str, offset: int, exact: bool = False
    ) -> tuple[Any, ...]:
        if len(payload) < layout.size or (exact and len(payload) != layout.size):
            self.file.fail(section, offset, f"{len(payload)} bytes: expected {'' if exact else 'from '}{layout.size}")
        return layout.unpack_from(payload)

    def _queue(self, layout: struct.Struct, payload: bytes, section: str, offset: int) -> tuple[bytes, tuple[Any, ...]]:
        """The body of a copy or fill, and how it is queued; nothing in versions without it."""
        if self.format_version in fmt.OLD_VERSIONS:
            return payload, ()
        body = payload[: -layout.size]
        return body, self._unpack(layout, payload[len(body) :], section, offset, exact=True)

    def _text(self, data: bytes, section: str, offset: int) -> str:
        if len(data) > fmt.MAX_TEXT_BYTES:
            self.file.fail(section, offset, f"a text of {len(data)} bytes, at most {fmt.MAX_TEXT_BYTES} are allowed")
        return data.decode("utf-8", "replace")

    def _read_provenance(self, payload: bytes, offset: int) -> Provenance:
        (n,) = self._unpack(struct.Struct("<I"), payload, "provenance", offset)
        texts: list[str] = []
        at = 4
        for _ in range(2 * n):
            if len(payload) < at + 4:
                self.file.fail("provenance", offset, f"{len(payload)} bytes, too few for {n} pairs of texts")
            (length,) = struct.unpack_from("<I", payload, at)
            if length > len(payload) - at - 4:
                self.file.fail("provenance", offset, f"a text of {length} bytes, {len(payload) - at - 4} are left")
            texts.append(self._text(payload[at + 4 : at + 4 + length], "provenance", offset))
            at += 4 + length
        if at != len(payload):
            self.file.fail("provenance", offset, f"{len(payload) - at} bytes after the last text")
        pairs = dict(zip(texts[0::2], texts[1::2], strict=True))
        prefix = "assumptions."
        return Provenance(
            **{key: pairs.get(key, "") for key in ("tool", "version", "source", "licence", "command")},
            assumptions={key.removeprefix(prefix): text for key, text in pairs.items() if key.startswith(prefix)},
        )

    def _add_small(self, kind: bytes, payload: bytes, offset: int) -> None:
        """An allocation, a free, a copy, a fill or a snapshot."""
        name = _name(kind)
        fail = self.file.fail
        if kind == fmt.ALLOCATE:
            base, size, space = self._unpack(fmt.ALLOCATE_HEAD, payload, name, offset)
            label = self._text(payload[fmt.ALLOCATE_HEAD.size :].rstrip(b"\0"), name, offset)
            if base % fmt.LINE_BYTES or not 0 < size <= fmt.MAX_ALLOCATION_BYTES or base > fmt.MAX_ADDRESS - size:
                fail(name, offset, f"{size} bytes at {base:#x}: expected a base that is a multiple of {fmt.LINE_BYTES}")
            if space >= len(fmt.SPACES):
                fail(name, offset, f"space {space}: expected 0 or 1")
            if (other := self._live.overlapping(base, base + size)) is not None:
                fail(name, offset, f"{size} bytes at {base:#x} overlap allocation {other.index}, which is live")
            index = len(self.allocations)
            self.allocations.append(Allocation(index, label, base, size, fmt.SPACES[space], len(self.events)))
            self._live.add(self.allocations[-1])
        elif kind == fmt.FREE:
            (index,) = self._unpack(fmt.FREE_BODY, payload, name, offset, exact=True)
            if index >= len(self.allocations) or self.allocations[index].free_event is not None:
                fail(name, offset, f"of allocation {index}, which isn't live")
            self.allocations[index].free_event = len(self.events)
            self._live.remove(self.allocations[index])
        elif kind == fmt.MEMCPY:
            payload, queued = self._queue(fmt.MEMCPY_QUEUE, payload, name, offset)
            stream, latency_ps, host_memory = queued or (0, 0, 0)
            address, size, source, direction, has_source = self._unpack(
                fmt.MEMCPY_BODY, payload, name, offset, exact=True
            )
            if host_memory >= len(fmt.HOST_MEMORIES) or latency_ps > fmt.MAX_COPY_LATENCY_PS:
                fail(name, offset, f"host memory {host_memory}, latency {latency_ps} ps")
            if direction >= len(fmt.MEMCPY_KINDS) or has_source > 1 or (direction == 2 and not has_source):
                fail(name, offset, f"kind {direction}, source given = {has_source}")
            if max(address, source) > fmt.MAX_ADDRESS or size > fmt.MAX_ADDRESS - max(address, source):
                fail(name, offset, f"{size} bytes at {address:#x} from {source:#x}: beyond 2^63")
            self.event_offsets.append(offset)
            self.events.append(
                Memcpy(
                    fmt.MEMCPY_KINDS[direction],
                    address,
                    size,
                    source if has_source else None,
                    stream,
                    fmt.HOST_MEMORIES[host_memory],
                    latency_ps or None,
                )
            )
        elif kind == fmt.MEMSET:
            payload, queued = self._queue(fmt.MEMSET_QUEUE, payload, name, offset)
            address, size, value, known = self._unpack(fmt.MEMSET_BODY, payload, name, offset, exact=True)
            if address > fmt.MAX_ADDRESS or size > fmt.MAX_ADDRESS - address or known > 1:
                fail(name, offset, f"{size} bytes at {address:#x}: beyond 2^63")
            self.event_offsets.append(offset)
            self.events.append(Memset(address, size, value if known else None, *queued))
        elif kind == fmt.SNAPSHOT:
            (launch_index,) = self._unpack(fmt.SNAPSHOT_HEAD, payload, name, offset)
            label = self._text(payload[fmt.SNAPSHOT_HEAD.size :], name, offset)
            self.snapshots.append(Snapshot(len(self.snapshots), launch_index, label))
        else:
            fail(name, offset, f"a section of type {kind!r}, unknown to format version {self.format_version}")

    def _add_kernel(self, payload: bytes, offset: int) -> None:
        index = len(self.kernels)
        section = f"kernel {index}"
        launch_index, stream, shared, gx, gy, gz, bx, by, bz, registers, code = self._unpack(
            fmt.KERNEL_HEAD, payload, section, offset
        )
        if min(gx, gy, gz) < 1 or gx * gy * gz > fmt.MAX_GRID_BLOCKS:
            self.file.fail(section, offset, f"its grid is {gx, gy, gz}: expected 1 to 2^32 blocks")
        if min(bx, by, bz) < 1 or bx * by * bz > fmt.MAX_BLOCK_THREADS:
            self.file.fail(section, offset, f"its block is {bx, by, bz}: expected 1 to 2^16 threads")
        if code and self.format_version in fmt.WITHOUT_CODE_BYTES:
            version = f"format version {self.format_version}"
            self.file.fail(section, offset, f"it has code of {code} bytes: expected none in {version}")
        if self.kernels and launch_index <= self.kernels[-1].launch_index:
            self.file.fail(
                section, offset, f"its launch index is {launch_index}, after {self.kernels[-1].launch_index}"
            )
        name = self._text(payload[fmt.KERNEL_HEAD.size :], section, offset)
        event = len(self.events)
        grid, block = (gx, gy, gz), (bx, by, bz)
        self.kernels.append(Kernel(index, name, launch_index, grid, block, registers, shared, stream, event, code))
        self.event_offsets.append(offset)
        self.events.append(KernelLaunch(index))

    def _count_chunks(self, kernel_rows: list[tuple[int, int]], ends: list[tuple[int, ...]]) -> None:
        """Gives each kernel its chunks and counts, and checks them against its end."""
        rows = self.file.index
        at = np.flatnonzero(rows["type"] == fmt.CHUNK)
        chunks = rows[at]
        owner = np.searchsorted([first for first, _ in kernel_rows], at, "right") - 1
        last_row = np.array([end for _, end in kernel_rows] + [-1])[owner]
        is_outlier = (owner < 0) | (at > last_row) | (chunks["kernel"] != owner)
        if is_outlier.any():
            chunk = chunks[int(np.argmax(is_outlier))]
            self.file.fail("chunk", int(chunk["offset"]), f"of kernel {chunk['kernel']}, not within it")
        sums = {
            name: np.concatenate(([np.uint64(0)], np.cumsum(chunks[name], dtype=np.uint64)))
            for name in ("warp_instructions", "memory_instructions", "n_lines", "n_blocks")
        }
        bounds = np.searchsorted(owner, np.arange(len(self.kernels) + 1), "left")
        for k, kernel in enumerate(self.kernels):
            first, end = int(bounds[k]), int(bounds[k + 1])
            counts = tuple(int(total[end]) - int(total[first]) for total in sums.values())
            kernel.warp_instructions, kernel.memory_instructions, kernel.line_accesses, kernel.n_blocks = counts
            kernel.chunks = ChunkList(chunks[first:end])
            if k < len(ends) and ends[k] != (*counts, end - first):
                self.file.fail(
                    f"end of kernel {k}",
                    int(rows["offset"][kernel_rows[k][1]]),
                    f"instructions, memory instructions, lines, blocks, chunks are {ends[k]} here and "
                    f"{(*counts, end - first)} in its chunks",
                )

    # -- chunks -------------------------------------------------------------------------------------------------------

    def stream_of(self, event: Event) -> int:
        """The stream of a launch, copy or fill."""
        return self.kernels[event.kernel].stream if isinstance(event, KernelLaunch) else event.stream

    def kernel_of(self, ref: ChunkRef) -> Kernel:
        """The kernel that a chunk belongs to."""
        return self.kernels[bisect_left(self._kernel_offsets, ref.offset) - 1]

    def decode_chunk(self, ref: ChunkRef) -> Chunk:
        """Records of a chunk, everything verified; from any thread, the heavy part without the GIL."""
        file = self.file
        kernel = self.kernel_of(ref)
        where = f"chunk of kernel {kernel.index} from block {ref.first_block}"
        section = file.section_at(ref.offset, where)
        if section.kind != fmt.CHUNK or section.length != ref.encoded_bytes:
            file.fail(where, ref.offset, "the index has another type or length")
        payload = file.payload(section, where)
        head = self._unpack(fmt.CHUNK_HEAD, payload, where, ref.offset)
        index, first_block, blocks, warps, ops, lines, memory, op_shapes, warp_shapes, wide, instructions, size = head
        if (index, *head[1:6], memory, instructions) != (kernel.index, *ref[1:6], *ref[7:]):
            file.fail(where, ref.offset, "the index has another kernel or other counts")
        if (
            not 0 < blocks <= fmt.MAX_CHUNK_BLOCKS
            or max(warps, warp_shapes) > fmt.MAX_CHUNK_WARPS
            or max(ops, op_shapes) > fmt.MAX_CHUNK_OPS
            or max(lines, wide) > fmt.MAX_CHUNK_LINES
        ):
            file.fail(where, ref.offset, f"{blocks} blocks, {warps} warps, {ops} ops, {lines} lines: too many")
        expected = fmt.column_bytes(blocks, warps, ops, lines, op_shapes, warp_shapes, wide, self.format_version)
        if size != expected:
            file.fail(where, ref.offset, f"columns of {size} bytes, its counts need {expected}")
        columns = file.decompress(memoryview(payload)[fmt.CHUNK_HEAD.size :], size, where, ref.offset)
        try:
            chunk = Chunk(
                *decode_columns(
                    columns, blocks, warps, ops, lines, op_shapes, warp_shapes, wide,
                    kernel.grid_blocks, kernel.warps_per_block, self.format_version,
                )
            )  # fmt: skip
        except ValueError as error:
            file.fail(where, ref.offset, str(error))
        if chunk.blocks["block"][0] != first_block:
            file.fail(where, ref.offset, f"begins with block {chunk.blocks['block'][0]}, its head says {first_block}")
        return chunk


def _name(kind: bytes) -> str:
    return {
        fmt.PROVENANCE: "provenance",
        fmt.ALLOCATE: "allocation",
        fmt.FREE: "free",
        fmt.MEMCPY: "memcpy",
        fmt.MEMSET: "memset",
        fmt.KERNEL: "kernel",
        fmt.KERNEL_END: "end of kernel",
        fmt.SNAPSHOT: "snapshot",
    }.get(kind, "where")


@within_budget
def open_trace(path: str | os.PathLike[str], *, incomplete: bool = False) -> Trace:
    """Opens a trace file.

    Parameters
    ----------
    path : the file, or the name of a trace that came with the package, such as ``"kv-cache"``
    incomplete : take what an interrupted capture left (``OUT.incomplete``), too

    Raises
    ------
    BuddysimError
        where it can't be read
    """
    return Trace(trace_path(path), incomplete=incomplete)
