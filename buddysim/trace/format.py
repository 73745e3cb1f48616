"""The layout of a trace file: constants and fixed structures. `docs/reference/trace-format.md` describes them byte by
byte."""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from buddysim.base.errors import TraceFileError
from buddysim.base.sections.section_format import SectionFormat
from buddysim.compress import ENTRY_BYTES, STUDY_CLASSES

MAGIC: Final = b"\x8fBUDDY\r\n"
END_MAGIC: Final = b"BUDDYEND"
FORMAT_VERSION: Final = 4
#: Read too: copies have no stream; in versions 1 and 2 tails have no unit slots, in version 1 ops have none either.
OLD_VERSIONS: Final = frozenset((1, 2, 3))
WITHOUT_CODE_BYTES: Final = frozenset((1, 2))

SECTIONS: Final = SectionFormat("a trace file", MAGIC, FORMAT_VERSION, TraceFileError, OLD_VERSIONS, alignment=8)
FOOTER: Final = struct.Struct("<QQII8s")  # index section's offset, file bytes, crc32 of the 16 before, 0, end magic

PROVENANCE: Final = b"PROV"
ALLOCATE: Final = b"ALOC"
FREE: Final = b"FREE"
MEMCPY: Final = b"MCPY"
MEMSET: Final = b"MSET"
KERNEL: Final = b"KERN"
KERNEL_END: Final = b"KEND"
CHUNK: Final = b"CHNK"
SNAPSHOT: Final = b"SNAP"
CONTENTS: Final = b"CONT"
SIZE_MAP: Final = b"SIZE"
INDEX: Final = b"INDX"
SECTION_TYPES: Final = frozenset(
    (PROVENANCE, ALLOCATE, FREE, MEMCPY, MEMSET, KERNEL, KERNEL_END, CHUNK, SNAPSHOT, CONTENTS, SIZE_MAP, INDEX)
)

ALLOCATE_HEAD: Final = struct.Struct("<QQB7x")  # base, bytes, space; then the name
FREE_BODY: Final = struct.Struct("<I4x")  # allocation
MEMCPY_BODY: Final = struct.Struct("<QQQBB6x")  # address, bytes, source, kind, source is given
MEMSET_BODY: Final = struct.Struct("<QQBB6x")  # address, bytes, value, value is known
MEMCPY_QUEUE: Final = struct.Struct("<QQB7x")  # behind the body: stream, latency (ps), host memory
MEMSET_QUEUE: Final = struct.Struct("<Q")  # behind the body: stream
# launch_index, stream, bytes of shared memory, grid, block, registers, bytes of code; then the name
KERNEL_HEAD: Final = struct.Struct("<QQQ3I3III")
KERNEL_END_BODY: Final = struct.Struct("<QQQQI4x")  # instructions, memory instructions, lines, blocks, chunks
SNAPSHOT_HEAD: Final = struct.Struct("<Q")  # point; then the label
CONTENTS_HEAD: Final = struct.Struct("<IIIIIIII")  # snapshot, allocation, page bytes, whole, pages, first, count, 0
SIZE_MAP_HEAD: Final = struct.Struct("<II16sQQII")  # snapshot, allocation, algorithm, entries, first, count, 0
# kernel, first block, blocks, warps, ops, lines, memory instructions, op shapes, warp shapes, wide deltas,
# warp instructions, bytes of the columns
CHUNK_HEAD: Final = struct.Struct("<10IQQ")

SPACES: Final = ("device", "host")
REPLAY_LABEL: Final = "replay:"  # begins the label of a snapshot that isn't one of those over the run
MEMCPY_KINDS: Final = ("htod", "dtoh", "dtod")
HOST_MEMORIES: Final = (None, "pageable", "pinned")
MAX_COPY_LATENCY_PS: Final = 10**15  # of one call

INDEX_DTYPE: Final = np.dtype(
    [
        ("type", "S4"),
        ("crc", "<u4"),
        ("offset", "<u8"),
        ("length", "<u8"),
        ("kernel", "<u4"),
        ("first_block", "<u4"),
        ("n_blocks", "<u4"),
        ("n_warps", "<u4"),
        ("n_ops", "<u4"),
        ("n_lines", "<u4"),
        ("memory_instructions", "<u4"),
        ("reserved", "<u4"),
        ("warp_instructions", "<u8"),
    ]
)
assert INDEX_DTYPE.itemsize == 64

# Limits. They bound what a damaged count can make a reader allocate.
MAX_TEXT_BYTES: Final = 1 << 16  # a name, a label, one provenance value
MAX_CHUNK_BLOCKS: Final = 1 << 24
MAX_CHUNK_WARPS: Final = 1 << 24
MAX_CHUNK_OPS: Final = 1 << 24
MAX_CHUNK_LINES: Final = 1 << 26
MAX_LINES_PER_OP: Final = 64  # 32 lanes, each of which may straddle two lines
MAX_ADDRESS: Final = 1 << 63  # a record keeps 56 bits of line number
MAX_ALLOCATION_BYTES: Final = 1 << 44
MAX_GRID_BLOCKS: Final = 1 << 32
MAX_BLOCK_THREADS: Final = 1 << 16
MAX_PAGE_BYTES: Final = 1 << 20

LINE_BYTES: Final = ENTRY_BYTES
WARP_THREADS: Final = 32
CHUNK_OPS: Final = 1 << 15  # a chunk is closed before it would pass this
CHUNK_LINES: Final = 1 << 16
CONTENTS_BLOCK_BYTES: Final = 1 << 20  # of memory contents in one section
SIZE_MAP_BLOCK_ENTRIES: Final = 1 << 20  # entries in one section
N_CLASSES: Final = len(STUDY_CLASSES)
PAGE_BYTES: Final = 8192  # of sampled contents, as in the sampled memory of the Buddy Compression study


def index_width(n_shapes: int) -> int:
    """Bytes of an index into a table of `n_shapes` shapes."""
    return 1 if n_shapes <= 1 << 8 else 2 if n_shapes <= 1 << 16 else 4


def op_shape_bytes(version: int) -> int:
    """Bytes of an op shape in the columns."""
    return 26 if version == 1 else 28


def warp_shape_bytes(version: int) -> int:
    """Bytes of a warp shape in the columns."""
    return 20 if version < 3 else 24


def column_bytes(
    n_blocks: int,
    n_warps: int,
    n_ops: int,
    n_lines: int,
    n_op_shapes: int,
    n_warp_shapes: int,
    n_wide: int,
    version: int = FORMAT_VERSION,
) -> int:
    """Size of a chunk's columns, uncompressed."""
    return (
        8 * n_blocks
        + warp_shape_bytes(version) * n_warp_shapes
        + index_width(n_warp_shapes) * n_warps
        + op_shape_bytes(version) * n_op_shapes
        + index_width(n_op_shapes) * n_ops
        + 5 * n_lines
        + 8 * n_wide
    )
