"""Records of whole thread blocks: those of a kernel that is being written, joined and divided."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: Blocks, warps, ops and lines, each ``first_*`` counted from the start of these arrays.
Records = tuple[npt.NDArray[np.void], npt.NDArray[np.void], npt.NDArray[np.void], npt.NDArray[np.uint64]]


class OpenKernel:
    """The kernel that is being written: its blocks that don't fill a chunk yet, its counts so far."""

    def __init__(self, index: int, grid_blocks: int, block_warps: int) -> None:
        self.index, self.grid_blocks, self.block_warps = index, grid_blocks, block_warps
        self.pending: list[Records] = []
        self.pending_ops = self.pending_lines = self.pending_blocks = self.pending_warps = 0
        self.warp_instructions = self.memory_instructions = self.lines = self.blocks = self.chunks = 0


def concatenate(parts: list[Records]) -> Records:
    """Records of several runs of blocks as those of one."""
    if len(parts) == 1:
        return parts[0]
    blocks, warps, ops, lines = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    blocks["first_warp"] = _starts(blocks["n_warps"])
    warps["first_op"] = _starts(warps["n_ops"])
    ops["first_line"] = _starts(ops["n_lines"])
    return blocks, warps, ops, lines


def _starts(counts: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    starts = np.cumsum(counts, dtype=np.int64)
    return starts - counts


def select_blocks(records: Records, first: int, end: int) -> Records:
    """Records of blocks ``first:end``, their indices counted from the start of the result."""
    blocks, warps, ops, lines = records
    if first == 0 and end == len(blocks):
        return records

    def bounds(starts: npt.NDArray[np.integer], total: int, a: int, b: int) -> tuple[int, int]:
        n = len(starts)
        return (int(starts[a]) if a < n else total), (int(starts[b]) if b < n else total)

    w0, w1 = bounds(blocks["first_warp"], len(warps), first, end)
    o0, o1 = bounds(warps["first_op"], len(ops), w0, w1)
    l0, l1 = bounds(ops["first_line"], len(lines), o0, o1)
    blocks, warps, ops = blocks[first:end].copy(), warps[w0:w1].copy(), ops[o0:o1].copy()
    blocks["first_warp"] -= np.uint32(w0)
    warps["first_op"] -= np.uint32(o0)
    ops["first_line"] -= np.uint32(l0)
    return blocks, warps, ops, lines[l0:l1].copy()
