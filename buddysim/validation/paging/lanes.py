"""Kernels given by the addresses of their lanes: a warp's accesses as lines and sectors, and as a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buddysim.compress import SECTOR_BYTES
from buddysim.synthetic.parts.kernels import load, store
from buddysim.trace import BLOCK_DTYPE, WARP_DTYPE, TraceWriter
from buddysim.trace.format import LINE_BYTES

OFF = -1
"""The address of a lane that accesses nothing."""
_WARP_BITS = 48
_OPS_AT_ONCE = 2**18


@dataclass(frozen=True)
class LaneInstruction:
    """An instruction of all warps of a kernel that have an active lane.

    Attributes
    ----------
    op : record of the instruction, without its lines
    warps : numbers of the warps, ascending
    counts : lines of each warp
    lines : records of all these lines
    """

    op: npt.NDArray[np.void]
    warps: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    lines: npt.NDArray[np.uint64]


@dataclass(frozen=True)
class LaneKernel:
    """A kernel: its instructions in program order, of `warps` warps in thread blocks of `warps_per_block`."""

    name: str
    warps: int
    warps_per_block: int
    steps: Sequence[LaneInstruction]


def coalesce(
    addresses: npt.NDArray[np.int64], bytes_per_lane: int, *, stores: bool, use_distance: int = 1
) -> LaneInstruction:
    """Coalesce the accesses of each warp's lanes.

    Parameters
    ----------
    addresses : by warp and lane; `OFF`: the lane is off. Below 2^48, aligned to `bytes_per_lane`
    bytes_per_lane : bytes of each lane
    stores : a store; else a load
    use_distance : instructions from a load to the first use of its result
    """
    warp, lane = np.nonzero(addresses != OFF)
    byte = np.unique(warp.astype(np.uint64) << np.uint64(_WARP_BITS) | addresses[warp, lane].astype(np.uint64))
    sector, times = np.unique(byte // np.uint64(SECTOR_BYTES), return_counts=True)
    line, first = np.unique(sector // np.uint64(LINE_BYTES // SECTOR_BYTES), return_index=True)
    bit = np.uint64(1) << sector % np.uint64(LINE_BYTES // SECTOR_BYTES)
    whole = bit * (times * bytes_per_lane == SECTOR_BYTES) if stores else np.zeros_like(bit)
    masks = [np.bitwise_or.reduceat(bits.astype(np.uint64), first) if len(first) else bit for bits in (whole, bit)]
    of_line = _WARP_BITS - LINE_BYTES.bit_length() + 1
    warps, counts = np.unique((line >> np.uint64(of_line)).astype(np.int64), return_counts=True)
    number = line & np.uint64((1 << of_line) - 1)
    record = store(bytes_per_lane=bytes_per_lane) if stores else load(
        bytes_per_lane=bytes_per_lane, use_distance=use_distance
    )  # fmt: skip
    return LaneInstruction(record, warps, counts, number << np.uint64(8) | masks[0] << np.uint64(4) | masks[1])


def write_kernel(writer: TraceWriter, kernel: LaneKernel) -> None:
    """Write a kernel into a trace."""
    blocks = -(-kernel.warps // kernel.warps_per_block)
    warp = np.concatenate([step.warps for step in kernel.steps])
    count = np.concatenate([step.counts for step in kernel.steps])
    ops = np.concatenate([np.repeat(step.op, len(step.warps)) for step in kernel.steps])
    lines = np.concatenate([step.lines for step in kernel.steps])
    starts = np.cumsum(count) - count
    order = np.argsort(warp, kind="stable")  # program order within a warp
    warp, count, ops, starts = warp[order], count[order], ops[order], starts[order]
    ops["n_lines"] = count
    per_warp = np.bincount(warp, minlength=blocks * kernel.warps_per_block)
    ends = np.cumsum(per_warp)
    writer.begin_kernel(kernel.name, (blocks, 1, 1), (32 * kernel.warps_per_block, 1, 1), registers=32)
    at_once = max(1, _OPS_AT_ONCE * blocks // max(1, len(ops)))
    for block in range(0, blocks, at_once):
        many = min(at_once, blocks - block)
        own = slice(block * kernel.warps_per_block, (block + many) * kernel.warps_per_block)
        first, last = int(ends[own.start] - per_warp[own.start]), int(ends[own.stop - 1])
        part, many_lines = ops[first:last].copy(), count[first:last]
        begins = np.cumsum(many_lines) - many_lines
        part["first_line"] = begins
        line_indices = np.arange(int(many_lines.sum())) + np.repeat(starts[first:last] - begins, many_lines)
        frames = _frames(block, many, per_warp[own], kernel.warps_per_block)
        writer.add_blocks(*frames, part, lines[line_indices])
    writer.end_kernel()


def _frames(
    block: int, many: int, ops: npt.NDArray[np.int64], warps_per_block: int
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """Return block and warp records of `many` blocks from `block` on; `ops` has the operations of each warp."""
    blocks, warps = np.zeros(many, BLOCK_DTYPE), np.zeros(len(ops), WARP_DTYPE)
    blocks["block"] = block + np.arange(many)
    blocks["n_warps"] = warps_per_block
    blocks["first_warp"] = np.arange(many) * warps_per_block
    warps["warp"] = np.tile(np.arange(warps_per_block), many)
    warps["n_ops"] = ops
    warps["first_op"] = np.cumsum(ops) - ops
    return blocks, warps
