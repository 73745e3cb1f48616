"""Writing a trace file, section by section, in bounded memory."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from operator import index
from typing import Literal

import numpy as np
import numpy.typing as npt
import zstandard
from zlib_ng.zlib_ng import crc32

from buddysim.base.output import Output
from buddysim.base.sections.section_format import HEADER
from buddysim.base.sections.section_writer import SectionWriter
from buddysim.compress import DEFAULT, ENTRY_BYTES, UNKNOWN_CLASS
from buddysim.trace import format as fmt
from buddysim.trace.blocks import OpenKernel, Records, concatenate, select_blocks
from buddysim.trace.codec import check_records, count_instructions, encode_columns
from buddysim.trace.live import LiveAllocations
from buddysim.trace.model import Allocation, Dim3, Provenance, warps_per_block
from buddysim.trace.reader import Kernel
from buddysim.trace.records import BLOCK_DTYPE, LINE_DTYPE, OP_DTYPE, WARP_DTYPE
from buddysim.trace.sections import TraceSections

_FILLER = b"room"
_CHUNK_FIELDS = (fmt.INDEX_DTYPE.names or ())[4:]  # of an index row

FAST_LEVEL = 1
# Levels of zstd for a chunk in a file that is to be written and read fast. Entropy coding, and then matches, are given
# up where they don't make a chunk at least this many times smaller: they take most of the decoding time.
_FAST_LEVELS = (FAST_LEVEL, -1, -100)
_WORTH_DECODING = 2


class TraceWriter(SectionWriter):
    """Writes a trace file; a context manager.

    The file appears under its name when it is complete; after an error before that, nothing is left.

    Parameters
    ----------
    path : the file to write; or an `Output`: the writer writes its part, and the caller completes it
    provenance : origin of the trace
    keep_part : if the writing is interrupted, its complete sections stay as ``PATH.incomplete``
    flush_each : each section is in the file at once, as with `keep_part`
    compression_level : of zstd; 1 is fast, 19 for files that are kept. At 1, chunks that compression does not make
        half as large (random addresses) are written as they are: half as large again, read many times as fast
    reserved_provenance_bytes : bytes by which `replace_provenance` may make the provenance longer
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Output,
        provenance: Provenance,
        *,
        keep_part: bool = False,
        flush_each: bool = False,
        compression_level: int = FAST_LEVEL,
        reserved_provenance_bytes: int = 0,
    ) -> None:
        levels = _FAST_LEVELS if compression_level == FAST_LEVEL else (compression_level,)
        self._compressors = [zstandard.ZstdCompressor(level=level, write_content_size=True) for level in levels]
        self._index: list[bytes] = []
        self._position = 0
        self._events = 0
        self._next_launch_index = 0
        self._n_kernels = 0
        self._kernel: OpenKernel | None = None
        self._allocations: list[Allocation] = []
        self._renamable: dict[int, tuple[int, int, int]] = {}  # position in the index and in the file, bytes for a name
        self._live = LiveAllocations()
        self._n_snapshots = 0
        self._filled: set[tuple[object, ...]] = set()
        output = path if isinstance(path, Output) else Output(path, keep_part=keep_part)
        super().__init__(fmt.SECTIONS, output, owned=output is not path, flush_each=flush_each or output.keep_part)
        try:
            self._provenance_bytes = len(self._provenance_payload(provenance)) + reserved_provenance_bytes
            self._section(fmt.PROVENANCE, self._provenance_of_size(provenance))
        except BaseException:
            self.abort()
            raise

    def _end(self) -> None:
        """Write index and footer."""
        if self._kernel is not None:
            self._fail("kernel", f"kernel {self._kernel.index} was begun and not ended")
        offset = self._position
        self._put(self.format.section(fmt.INDEX, b"".join(self._index)))
        body = struct.pack("<QQ", offset, self._position + fmt.FOOTER.size)
        self._put(body + struct.pack("<II8s", crc32(body), 0, fmt.END_MAGIC))

    def _section(self, kind: bytes, payload: bytes, chunk: tuple[int, ...] = (0,) * 9) -> None:
        """Write a section, and note it in the index."""
        self._index.append(_index_row(kind, self._position, payload, chunk))
        super()._section(kind, payload)

    def copy_section(self, file: TraceSections, row: int) -> None:
        """Writes a section of another file as it is; the sections copied must make a trace file together."""
        entry = file.index[row]
        payload = file.row_payload(row, "section")
        self._section(bytes(entry["type"]), payload, tuple(int(entry[name]) for name in _CHUNK_FIELDS))

    def end_copied_kernel(self, kernel: Kernel) -> None:
        """Ends a kernel whose sections were copied, and of which no more are there."""
        counts = kernel.warp_instructions, kernel.memory_instructions, kernel.line_accesses, kernel.n_blocks
        self._section(fmt.KERNEL_END, fmt.KERNEL_END_BODY.pack(*counts, len(kernel.chunks)))

    def _text(self, text: str, section: str) -> bytes:
        data = text.encode("utf-8", "replace")
        if len(data) > fmt.MAX_TEXT_BYTES:
            self._fail(section, f"a text of {len(data)} bytes, at most {fmt.MAX_TEXT_BYTES} are allowed")
        return data

    def _name(self, text: str, section: str) -> bytes:
        """An allocation's name, which zero bytes may follow."""
        if text.endswith("\0"):
            self._fail(section, f"its name {text!r} ends in a zero character: expected another one there")
        return self._text(text, section)

    def _number(self, value: int, bits: int, what: str, section: str) -> int:
        if not 0 <= value < 1 << bits:
            self._fail(section, f"{what} is {value}: expected 0 to 2^{bits} - 1")
        return int(value)

    def _outside_kernel(self, section: str) -> None:
        if self._kernel is not None:
            self._fail(section, f"kernel {self._kernel.index} must be ended first")

    def replace_provenance(self, provenance: Provenance) -> None:
        """Overwrites the provenance, for facts known only at the end; it must fit in the reserved bytes."""
        self._replace_row(0, fmt.PROVENANCE, HEADER.size, self._provenance_of_size(provenance))

    def rename_allocation(self, allocation: int, name: str) -> None:
        """Gives an allocation another name, cut off at the reserved bytes."""
        section, offset, reserved = self._renamable[allocation]
        known = self._allocations[allocation]
        fitting = name.encode("utf-8", "replace")[:reserved].decode("utf-8", "ignore")
        head = fmt.ALLOCATE_HEAD.pack(known.base, known.bytes, fmt.SPACES.index(known.space))
        self._replace_row(section, fmt.ALLOCATE, offset, head + fitting.encode().ljust(reserved, b"\0"))
        known.name = fitting

    def _replace_row(self, row: int, kind: bytes, offset: int, payload: bytes) -> None:
        """Write another payload of the same length over that of a section, which is row `row` of the index."""
        self._replace(kind, offset, payload)
        self._index[row] = _index_row(kind, offset, payload)

    def _provenance_of_size(self, provenance: Provenance) -> bytes:
        """The payload, padded with a key that readers ignore."""
        payload = self._provenance_payload(provenance)
        if (reserved := self._provenance_bytes - len(payload)) == 0:
            return payload
        reserved -= len(_FILLER) + 8
        if reserved < 0:
            self._fail("provenance", f"{len(payload)} bytes: expected at most {self._provenance_bytes}")
        (n,) = struct.unpack_from("<I", payload)
        filler = struct.pack("<I", len(_FILLER)) + _FILLER + struct.pack("<I", reserved) + b" " * reserved
        return struct.pack("<I", n + 1) + payload[4:] + filler

    def _provenance_payload(self, provenance: Provenance) -> bytes:
        pairs = [(key, getattr(provenance, key)) for key in ("tool", "version", "source", "licence", "command")]
        pairs += [(f"assumptions.{key}", text) for key, text in sorted(provenance.assumptions.items())]
        parts = [struct.pack("<I", len(pairs))]
        for pair in pairs:
            for text in pair:
                data = self._text(text, "provenance")
                parts.append(struct.pack("<I", len(data)) + data)
        return b"".join(parts)

    # -- allocations and events ---------------------------------------------------------------------------------------

    def add_allocation(
        self,
        name: str,
        base: int,
        bytes: int,
        space: Literal["device", "host"] = "device",
        reserved_name_bytes: int = 0,
    ) -> int:
        """An allocation that lives from here on; gives its index.

        With `reserved_name_bytes` bytes for a name, `rename_allocation` can give it another one later.
        """
        self._outside_kernel("allocation")
        base, bytes = index(base), index(bytes)
        number = len(self._allocations)
        where = f"allocation {number} ({name!r})"
        if base % fmt.LINE_BYTES:
            self._fail(where, f"its base {base:#x} is not a multiple of {fmt.LINE_BYTES}")
        if not 0 < bytes <= fmt.MAX_ALLOCATION_BYTES:
            self._fail(where, f"its size is {bytes} bytes: expected 1 to {fmt.MAX_ALLOCATION_BYTES}")
        if not 0 <= base <= fmt.MAX_ADDRESS - bytes:
            self._fail(where, f"it ends at {base + bytes:#x}, beyond 2^63")
        if space not in fmt.SPACES:
            self._fail(where, f"its space is {space!r}: expected one of {', '.join(fmt.SPACES)}")
        if (other := self._live.overlapping(base, base + bytes)) is not None:
            self._fail(where, f"it overlaps allocation {other.index} ({other.name!r}), which is live")
        payload = fmt.ALLOCATE_HEAD.pack(base, bytes, fmt.SPACES.index(space))
        text = self._name(name, where).ljust(reserved_name_bytes, b"\0")
        if reserved_name_bytes:
            self._renamable[number] = len(self._index), self._position, len(text)
        self._section(fmt.ALLOCATE, payload + text)
        allocation = Allocation(number, name, base, bytes, space, self._events)
        self._allocations.append(allocation)
        self._live.add(allocation)
        return number

    def free_allocation(self, allocation: int) -> None:
        """The allocation ends here."""
        self._outside_kernel("free")
        if not 0 <= allocation < len(self._allocations) or self._allocations[allocation].free_event is not None:
            self._fail("free", f"there is no live allocation {allocation}")
        self._section(fmt.FREE, fmt.FREE_BODY.pack(allocation))
        self._allocations[allocation].free_event = self._events
        self._live.remove(self._allocations[allocation])

    def memcpy(
        self,
        kind: Literal["htod", "dtoh", "dtod"],
        address: int,
        bytes: int,
        source: int | None = None,
        *,
        stream: int = 0,
        host_memory: Literal["pageable", "pinned"] | None = None,
        latency_ps: int | None = None,
    ) -> None:
        """A copy (`Memcpy`); `address` is the device side (``dtod``: the destination)."""
        self._outside_kernel("memcpy")
        if kind not in fmt.MEMCPY_KINDS:
            self._fail("memcpy", f"its kind is {kind!r}: expected one of {', '.join(fmt.MEMCPY_KINDS)}")
        self._range(address, bytes, "memcpy")
        if source is not None:
            self._range(source, bytes, "memcpy")
        elif kind == "dtod":
            self._fail("memcpy", "a copy on the device needs its source address")
        if host_memory not in fmt.HOST_MEMORIES:
            self._fail("memcpy", f"host memory {host_memory!r}: expected pageable, pinned or None")
        if latency_ps is not None and not 0 < latency_ps <= fmt.MAX_COPY_LATENCY_PS:
            self._fail("memcpy", f"a latency of {latency_ps} ps: expected 1 to {fmt.MAX_COPY_LATENCY_PS}, or None")
        body = fmt.MEMCPY_BODY.pack(address, bytes, source or 0, fmt.MEMCPY_KINDS.index(kind), source is not None)
        number = self._number(stream, 64, "the stream", "memcpy")
        queue = fmt.MEMCPY_QUEUE.pack(number, latency_ps or 0, fmt.HOST_MEMORIES.index(host_memory))
        self._section(fmt.MEMCPY, body + queue)
        self._events += 1

    def memset(self, address: int, bytes: int, value: int | None, *, stream: int = 0) -> None:
        """A fill with one byte value; None where it isn't one byte repeated, or not known."""
        self._outside_kernel("memset")
        self._range(address, bytes, "memset")
        byte = 0 if value is None else self._number(value, 8, "the value", "memset")
        queue = fmt.MEMSET_QUEUE.pack(self._number(stream, 64, "the stream", "memset"))
        self._section(fmt.MEMSET, fmt.MEMSET_BODY.pack(address, bytes, byte, value is not None) + queue)
        self._events += 1

    def _range(self, address: int, n: int, section: str) -> None:
        if not (0 <= address <= fmt.MAX_ADDRESS and 0 <= n <= fmt.MAX_ADDRESS - address):
            self._fail(section, f"the range of {n} bytes at {address:#x} is outside 0 to 2^63")

    # -- kernels ------------------------------------------------------------------------------------------------------

    def begin_kernel(
        self,
        name: str,
        grid: Dim3,
        block: Dim3,
        registers: int = 0,
        shared_memory_bytes: int = 0,
        stream: int = 0,
        launch_index: int | None = None,
        code_bytes: int = 0,
    ) -> int:
        """A launch; `launch_index` counts the program's launches before it. Gives the kernel's index."""
        self._outside_kernel("kernel")
        where = f"kernel {self._n_kernels} ({name!r})"
        launch_index = (
            self._next_launch_index
            if launch_index is None
            else self._number(launch_index, 62, "the launch index", where)
        )
        if launch_index < self._next_launch_index:
            self._fail(where, f"its launch index is {launch_index}: expected {self._next_launch_index} or more")
        for what, dims, most in (
            ("grid", grid, fmt.MAX_GRID_BLOCKS),
            ("block", block, fmt.MAX_BLOCK_THREADS),
        ):
            if len(dims) != 3 or min(dims) < 1 or max(dims) >= 1 << 32 or dims[0] * dims[1] * dims[2] > most:
                self._fail(where, f"its {what} is {tuple(dims)}: expected three numbers from 1, product up to {most}")
        payload = fmt.KERNEL_HEAD.pack(
            launch_index,
            self._number(stream, 64, "the stream", where),
            self._number(shared_memory_bytes, 64, "the shared memory", where),
            *grid,
            *block,
            self._number(registers, 32, "the number of registers", where),
            self._number(code_bytes, 32, "the size of the code", where),
        )
        self._section(fmt.KERNEL, payload + self._text(name, where))
        self._kernel = OpenKernel(self._n_kernels, grid[0] * grid[1] * grid[2], warps_per_block(block))
        self._next_launch_index = launch_index + 1
        self._n_kernels += 1
        self._events += 1
        return self._kernel.index

    def add_blocks(
        self,
        blocks: npt.NDArray[np.void],
        warps: npt.NDArray[np.void],
        ops: npt.NDArray[np.void],
        lines: npt.NDArray[np.uint64],
    ) -> None:
        """Records of whole thread blocks, laid out as in a Chunk (each ``first_*`` the sum of the counts before)."""
        kernel = self._need_kernel()
        records: Records = (
            np.ascontiguousarray(blocks, BLOCK_DTYPE),
            np.ascontiguousarray(warps, WARP_DTYPE),
            np.ascontiguousarray(ops, OP_DTYPE),
            np.ascontiguousarray(lines, LINE_DTYPE),
        )
        try:
            check_records(*records, grid_blocks=kernel.grid_blocks, block_warps=kernel.block_warps)
        except ValueError as error:
            self._fail(f"records of kernel {kernel.index}", str(error))
        # ops and lines of the blocks up to and including each
        warp_ends = records[0]["first_warp"].astype(np.int64) + records[0]["n_warps"]
        op_ends = np.append(records[1]["first_op"], len(records[2])).astype(np.int64)[warp_ends]
        line_ends = np.append(records[2]["first_line"], len(records[3])).astype(np.int64)[op_ends]
        first = 0
        n_blocks = len(warp_ends)
        while first < n_blocks:
            ops_before, lines_before, warps_before = (
                (int(op_ends[first - 1]), int(line_ends[first - 1]), int(warp_ends[first - 1])) if first else (0, 0, 0)
            )
            end = min(
                int(np.searchsorted(op_ends, ops_before + fmt.CHUNK_OPS - kernel.pending_ops, "right")),
                int(np.searchsorted(line_ends, lines_before + fmt.CHUNK_LINES - kernel.pending_lines, "right")),
                int(np.searchsorted(warp_ends, warps_before + fmt.CHUNK_OPS - kernel.pending_warps, "right")),
                first + fmt.CHUNK_OPS - kernel.pending_blocks,
                n_blocks,
            )
            if end <= first:
                if kernel.pending:
                    self._write_chunk(kernel)
                    continue
                end = first + 1  # a block larger than a chunk has one for itself
            kernel.pending.append(select_blocks(records, first, end))
            kernel.pending_blocks += end - first
            kernel.pending_warps += int(warp_ends[end - 1]) - warps_before
            kernel.pending_ops += int(op_ends[end - 1]) - ops_before
            kernel.pending_lines += int(line_ends[end - 1]) - lines_before
            first = end

    def end_kernel(self) -> None:
        """The kernel has all its blocks."""
        kernel = self._need_kernel()
        self._write_chunk(kernel)
        payload = fmt.KERNEL_END_BODY.pack(
            kernel.warp_instructions, kernel.memory_instructions, kernel.lines, kernel.blocks, kernel.chunks
        )
        self._section(fmt.KERNEL_END, payload)
        self._kernel = None

    def _need_kernel(self) -> OpenKernel:
        if self._kernel is None:
            self._fail("kernel", "no kernel was begun")
        return self._kernel

    def _write_chunk(self, kernel: OpenKernel) -> None:
        if not kernel.pending:
            return
        blocks, warps, ops, lines = records = concatenate(kernel.pending)
        for what, n, most in (
            ("ops", len(ops), fmt.MAX_CHUNK_OPS),
            ("lines", len(lines), fmt.MAX_CHUNK_LINES),
        ):
            if n > most:
                self._fail(f"kernel {kernel.index}", f"block {blocks['block'][0]} has {n} {what}, at most {most}")
        columns, n_op_shapes, n_warp_shapes, n_wide = encode_columns(*records)
        instructions, memory = count_instructions(warps, ops)
        first_block = int(blocks["block"][0])
        counts = (len(blocks), len(warps), len(ops), len(lines), memory)
        head = fmt.CHUNK_HEAD.pack(
            kernel.index, first_block, *counts, n_op_shapes, n_warp_shapes, n_wide, instructions, columns.size
        )
        for compressor in self._compressors:
            frame = compressor.compress(columns.data)
            if len(frame) * _WORTH_DECODING <= columns.size:
                break
        self._section(fmt.CHUNK, head + frame, (kernel.index, first_block, *counts, 0, instructions))
        kernel.warp_instructions += instructions
        kernel.memory_instructions += memory
        kernel.lines += len(lines)
        kernel.blocks += len(blocks)
        kernel.chunks += 1
        kernel.pending = []
        kernel.pending_ops = kernel.pending_lines = kernel.pending_blocks = kernel.pending_warps = 0

    # -- values -------------------------------------------------------------------------------------------------------

    def add_snapshot(self, launch_index: int, label: str = "") -> int:
        """Begins a snapshot of memory, taken after `launch_index` launches; gives its index."""
        where = f"snapshot {self._n_snapshots}"
        self._number(launch_index, 62, "the launch index", where)
        self._section(fmt.SNAPSHOT, fmt.SNAPSHOT_HEAD.pack(launch_index) + self._text(label, where))
        self._n_snapshots += 1
        return self._n_snapshots - 1

    def add_contents(
        self,
        snapshot: int,
        allocation: int,
        data: npt.NDArray[np.uint8] | bytes,
        pages: npt.ArrayLike | None = None,
        page_bytes: int = fmt.PAGE_BYTES,
    ) -> None:
        """Bytes of an allocation in a snapshot: all of them, or those of the sampled `pages` (ascending numbers).

        The last page of the allocation may be short.
        """
        where, target = self._values_of("contents", snapshot, allocation, ("contents",))
        if not (0 < page_bytes <= fmt.MAX_PAGE_BYTES and page_bytes % ENTRY_BYTES == 0):
            self._fail(where, f"pages of {page_bytes} bytes: expected a multiple of {ENTRY_BYTES} up to 1 MiB")
        values = np.frombuffer(data, np.uint8) if isinstance(data, bytes | bytearray) else np.asarray(data)
        if values.dtype != np.uint8 or values.ndim != 1:
            self._fail(where, f"its data is {values.dtype} of {values.ndim} dimensions: expected a row of uint8")
        n_pages = -(-target.bytes // page_bytes)
        numbers = None
        if pages is not None:
            page_numbers = np.asarray(pages)
            numbers = page_numbers.astype(np.uint32)
            if not np.array_equal(page_numbers, numbers) or (len(numbers) and int(numbers[-1]) >= n_pages):
                self._fail(where, f"a page number outside 0 to {n_pages - 1}")
            if np.any(numbers[1:] <= numbers[:-1]):
                self._fail(where, "the page numbers do not ascend")
            stored = len(numbers)
            expected = stored * page_bytes
            if stored and int(numbers[-1]) == n_pages - 1:
                expected -= n_pages * page_bytes - target.bytes
        else:
            stored, expected = n_pages, target.bytes
        if len(values) != expected:
            self._fail(where, f"it has {len(values)} bytes: expected {expected}")
        if stored >= 1 << 32:
            self._fail(where, f"{stored} pages, at most 2^32 - 1 are allowed; larger pages are possible")
        per_block = fmt.CONTENTS_BLOCK_BYTES // page_bytes
        for first in range(0, max(stored, 1), per_block):
            count = min(per_block, stored - first)
            raw = np.ascontiguousarray(values[first * page_bytes : (first + count) * page_bytes])
            sampled = b"" if numbers is None else numbers[first : first + count].astype("<u4").tobytes()
            head = fmt.CONTENTS_HEAD.pack(snapshot, allocation, page_bytes, numbers is None, stored, first, count, 0)
            self._section(fmt.CONTENTS, head + sampled + self._compressors[0].compress(raw.data))

    def add_size_map(
        self,
        snapshot: int,
        allocation: int,
        classes: npt.NDArray[np.uint8] | Mapping[int, npt.NDArray[np.uint8]],
        compressor: str = DEFAULT,
    ) -> None:
        """Size class of every entry of an allocation in a snapshot, 15 where it isn't known.

        Of an allocation of which little is known, `classes` can be those of the blocks of 2^20 entries of which
        anything is, by their numbers.
        """
        where, target = self._values_of("size map", snapshot, allocation, ("size map", compressor))
        name = compressor.encode("ascii", "replace")
        if not 0 < len(name) <= 16:
            self._fail(where, f"the compressor's name {compressor!r} is not 1 to 16 characters long")
        if not isinstance(classes, Mapping):
            classes = np.asarray(classes)
            if classes.dtype != np.uint8 or classes.shape != (target.entries,):
                self._fail(where, f"classes are {classes.dtype} {classes.shape}: expected uint8 ({target.entries},)")
        step, unknown = fmt.SIZE_MAP_BLOCK_ENTRIES, b""
        for number, first in enumerate(range(0, target.entries, step)):
            count = min(step, target.entries - first)
            part = classes.get(number) if isinstance(classes, Mapping) else classes[first : first + step]
            if part is not None:
                frame = self._packed_classes(part[:count], where)
            else:
                if not unknown or count < step:
                    unknown = self._packed_classes(np.full(count, UNKNOWN_CLASS, dtype=np.uint8), where)
                frame = unknown
            head = fmt.SIZE_MAP_HEAD.pack(snapshot, allocation, name, target.entries, first, count, 0)
            self._section(fmt.SIZE_MAP, head + frame)

    def _packed_classes(self, classes: npt.NDArray[np.uint8], where: str) -> bytes:
        """Two classes a byte, compressed."""
        if np.any((classes >= fmt.N_CLASSES) & (classes != UNKNOWN_CLASS)):
            self._fail(where, "a class that is not 0 to 7 or 15")
        low, high = classes[0::2], classes[1::2]
        packed = low.copy()
        packed[: len(high)] |= high << 4
        return self._compressors[0].compress(packed.tobytes())

    def _values_of(self, what: str, snapshot: int, allocation: int, key: tuple[str, ...]) -> tuple[str, Allocation]:
        where = f"{what} of allocation {allocation} in snapshot {snapshot}"
        if not 0 <= snapshot < self._n_snapshots:
            self._fail(where, f"there are {self._n_snapshots} snapshots")
        if not 0 <= allocation < len(self._allocations):
            self._fail(where, f"there are {len(self._allocations)} allocations")
        if (*key, snapshot, allocation) in self._filled:
            self._fail(where, "it exists already")
        self._filled.add((*key, snapshot, allocation))
        return where, self._allocations[allocation]


def _index_row(kind: bytes, offset: int, payload: bytes, chunk: tuple[int, ...] = (0,) * 9) -> bytes:
    return struct.pack("<4sIQQ8IQ", kind, crc32(payload), offset, len(payload), *chunk)
