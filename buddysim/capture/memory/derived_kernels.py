"""The derived kernel of an interval between two snapshots.

A native program has no warps. A capture knows which memory the program had and which pages changed. So each interval
becomes one streaming kernel: a warp per page of 8 KiB reads its lines in groups of eight. If the page's contents
changed, the warp writes each group back. `ASSUMED` states the other assumptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from buddysim.compress import ENTRY_BYTES, SECTOR_BYTES
from buddysim.importers.opencl.assumptions import COMPUTE_GAP, FIRST_COMPUTE_GAP, TAIL
from buddysim.trace import BLOCK_DTYPE, OP_DTYPE, OP_LOAD, OP_STORE, WARP_DTYPE, TraceWriter
from buddysim.trace.format import PAGE_BYTES
from buddysim.trace.model import DERIVED_ACCESSES

LINE_BYTES: Final = ENTRY_BYTES
LINES_PER_PAGE: Final = PAGE_BYTES // LINE_BYTES
GROUP_LINES: Final = 8  # lines read before the first one is used
WARPS_PER_BLOCK: Final = 8
_PAGES_AT_ONCE: Final = 4096

ASSUMED: Final = {
    "accesses": (
        f"{DERIVED_ACCESSES}a native program has no warps. One kernel per interval between snapshots reads every "
        "captured allocation once. It writes the pages of 8 KiB whose contents differ from the snapshot before (a new "
        "allocation's from zeros; an unseen page as the nearest seen page), in full lines, by address. Locality and "
        "traffic of a GPU version would differ: compare compression, not times."
    ),
    "compute_gaps": (
        f"Assumed: {FIRST_COMPUTE_GAP} instructions before a warp's first access, {COMPUTE_GAP} before each further "
        f"one, {TAIL} after the last, without barriers and latencies. Compute time is optimistic."
    ),
    "dependencies": f"Assumed: a warp reads groups of {GROUP_LINES} lines and uses them after the last line.",
}


@dataclass(frozen=True)
class StreamedRange:
    """An allocation that a kernel streams over; `changed` has a flag for each page of 8 KiB that is written."""

    base: int
    bytes: int
    changed: npt.NDArray[np.bool_]


def _page(page_bytes: int, written: bool) -> tuple[npt.NDArray[np.void], npt.NDArray[np.uint64]]:
    """Return the operations of a warp on a page at address 0, and their line records."""
    kinds, numbers, distances = [], [], []
    n_lines = -(-page_bytes // LINE_BYTES)
    for first in range(0, n_lines, GROUP_LINES):
        group = range(first, min(first + GROUP_LINES, n_lines))
        for line in group:
            kinds.append(OP_LOAD)
            numbers.append(line)
            distances.append(1 + (group[-1] - line) * (COMPUTE_GAP + 1))
        if written:
            kinds += [OP_STORE] * len(group)
            numbers += group
            distances += [0] * len(group)
    ops = np.zeros(len(kinds), OP_DTYPE)
    ops["kind"], ops["use_distance"], ops["n_lines"], ops["bytes_per_lane"] = kinds, distances, 1, 4
    ops["gap_instructions"] = COMPUTE_GAP
    ops["gap_instructions"][0] = FIRST_COMPUTE_GAP
    lines = np.array(numbers, np.uint64)
    left = np.minimum(page_bytes - lines.astype(np.int64) * LINE_BYTES, LINE_BYTES)  # the last line may be short
    touched, whole = (1 << -(-left // SECTOR_BYTES)) - 1, (1 << left // SECTOR_BYTES) - 1
    masks = np.where(ops["kind"] == OP_STORE, whole << 4 | touched, touched)
    return ops, lines << np.uint64(8) | masks.astype(np.uint64)


def _starts(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.cumsum(counts) - counts


def _runs(changed: npt.NDArray[np.bool_], first: int, end: int, last_is_short: bool) -> list[tuple[int, int]]:
    """Yield pages ``first:end`` as runs of equal pages: all written or none, all complete."""
    cuts = np.flatnonzero(changed[first + 1 : end] != changed[first : end - 1]) + first + 1
    ends = [*cuts.tolist(), end]
    if last_is_short and end - 1 not in (first, *ends):
        ends.insert(-1, end - 1)
    return list(zip([first, *ends[:-1]], ends, strict=True))


def _write_pages(writer: TraceWriter, allocation: StreamedRange, first: int, end: int, first_block: int) -> None:
    """Return the thread blocks of pages ``first:end`` of an allocation."""
    all_ops, all_lines, counts = [], [], []
    for run, run_end in _runs(allocation.changed, first, end, end * PAGE_BYTES > allocation.bytes):
        page_bytes = min(PAGE_BYTES, allocation.bytes - run * PAGE_BYTES)
        ops, lines = _page(page_bytes, bool(allocation.changed[run]))
        bases = np.arange(run, run_end, dtype=np.uint64) * np.uint64(LINES_PER_PAGE)
        bases += np.uint64(allocation.base // LINE_BYTES)
        all_ops.append(np.tile(ops, run_end - run))
        all_lines.append(((bases[:, None] << np.uint64(8)) + lines).reshape(-1))
        counts += [len(ops)] * (run_end - run)
    ops, lines = np.concatenate(all_ops), np.concatenate(all_lines)
    ops["first_line"] = np.arange(len(ops))
    n_ops = np.array(counts, np.int64)
    warps = np.zeros(len(counts), WARP_DTYPE)
    warps["warp"] = np.arange(len(counts)) % WARPS_PER_BLOCK
    warps["first_op"], warps["n_ops"], warps["tail_gap_instructions"] = _starts(n_ops), n_ops, TAIL
    n_warps = np.full(-(-len(counts) // WARPS_PER_BLOCK), WARPS_PER_BLOCK, np.int64)
    n_warps[-1] = len(counts) - (len(n_warps) - 1) * WARPS_PER_BLOCK
    blocks = np.zeros(len(n_warps), BLOCK_DTYPE)
    blocks["block"] = first_block + np.arange(len(n_warps))
    blocks["first_warp"], blocks["n_warps"] = _starts(n_warps), n_warps
    writer.add_blocks(blocks, warps, ops, lines)


def write_interval(writer: TraceWriter, name: str, allocations: Sequence[StreamedRange], launch_index: int) -> None:
    """Write the kernel of one interval; none if no allocation was captured."""
    per_allocation = [-(-len(allocation.changed) // WARPS_PER_BLOCK) for allocation in allocations]
    if not sum(per_allocation):
        return
    writer.begin_kernel(name, (sum(per_allocation), 1, 1), (32 * WARPS_PER_BLOCK, 1, 1), launch_index=launch_index)
    block = 0
    for allocation, blocks in zip(allocations, per_allocation, strict=True):
        pages = len(allocation.changed)
        for first in range(0, pages, _PAGES_AT_ONCE):
            end = min(first + _PAGES_AT_ONCE, pages)
            _write_pages(writer, allocation, first, end, block + first // WARPS_PER_BLOCK)
        block += blocks
    writer.end_kernel()
