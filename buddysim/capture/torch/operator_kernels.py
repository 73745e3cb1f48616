"""Derives a kernel for each operator from its operands, as a script on a CPU has no warps.

Its warps stream over its operands in strides of the whole grid. At each step a warp reads one line (128 B) of every
operand that has one left, then writes one line of every result. Neighbouring warps touch neighbouring lines. The
operator's multiply-adds are spread evenly between its accesses.
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

LINE_BYTES: Final = ENTRY_BYTES
WARPS_PER_BLOCK: Final = 8
LINES_PER_WARP: Final = 8
WARP_LANES: Final = 32
_LONGEST_GAP: Final = 10**6
_WARPS_AT_ONCE: Final = 4096

ASSUMED: Final = {
    "accesses": (
        "Derived, not captured: a script on a CPU has no warps. One kernel per operator of one iteration reads each "
        "operand once and writes each result once, in full lines, neighbouring warps in neighbouring lines. Repeated "
        "reads of weights, halos and tiles are left out: traffic is optimistic. Views and empty tensors have no kernel."
    ),
    "compute_gaps": (
        f"Derived: {FIRST_COMPUTE_GAP} instructions before a warp's first access, {COMPUTE_GAP} before each further "
        f"one, {TAIL} after the last, and the operator's multiply-adds, {WARP_LANES} per instruction (fp32, no tensor "
        "cores), spread evenly over its accesses, without barriers and latencies. Compute-bound kernels err in either "
        "direction."
    ),
    "dependencies": (
        "Assumed: a warp uses what it reads before its next store, or before its next group of reads. Warps may stall "
        "earlier or later in reality."
    ),
}


@dataclass(frozen=True)
class OperandRange:
    """A range of memory that a kernel streams over."""

    address: int
    bytes: int
    written: bool

    @property
    def lines(self) -> int:
        """Number of lines that it touches."""
        return (self.address + self.bytes - 1) // LINE_BYTES - self.address // LINE_BYTES + 1

    def records(self, lines: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Return line records by number from its first line; the first and the last line may be partial."""
        first = np.maximum(self.address - (self.address // LINE_BYTES + lines) * LINE_BYTES, 0)
        end = np.minimum(self.address + self.bytes - (self.address // LINE_BYTES + lines) * LINE_BYTES, LINE_BYTES)
        touched = _sectors(first // SECTOR_BYTES, -(-end // SECTOR_BYTES))
        whole = _sectors(-(-first // SECTOR_BYTES), end // SECTOR_BYTES) if self.written else np.zeros_like(touched)
        number = (self.address // LINE_BYTES + lines).astype(np.uint64)
        return number << np.uint64(8) | whole << np.uint64(4) | touched


def _sectors(first: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return the masks of the sectors from `first` to `end`."""
    masks = (1 << end) - (1 << np.minimum(first, end))
    return masks.astype(np.uint64)


def write_operator(
    writer: TraceWriter, name: str, operands: Sequence[OperandRange], flops: int, launch_index: int
) -> None:
    """Write the kernel of one operator.

    Parameters
    ----------
    writer : writer of the trace
    name : of the kernel
    operands : read and written ranges, none empty; loads come before stores
    flops : multiplications and additions
    launch_index : launches before it
    """
    operands = sorted(operands, key=lambda operand: operand.written)
    most = max(operand.lines for operand in operands)
    accesses = sum(operand.lines for operand in operands)
    blocks = -(-most // (WARPS_PER_BLOCK * LINES_PER_WARP))
    warps = blocks * WARPS_PER_BLOCK
    extra = min(flops // (2 * WARP_LANES * accesses), _LONGEST_GAP)
    writer.begin_kernel(name, (blocks, 1, 1), (WARP_LANES * WARPS_PER_BLOCK, 1, 1), launch_index=launch_index)
    for first in range(0, warps, _WARPS_AT_ONCE):
        _write_warps(writer, operands, first, min(first + _WARPS_AT_ONCE, warps), warps, extra)
    writer.end_kernel()


def _write_warps(
    writer: TraceWriter, operands: Sequence[OperandRange], first: int, end: int, warps: int, extra: int
) -> None:
    """Write the records of warps ``first:end`` (whole blocks), of `warps` in total."""
    numbers = np.arange(first, end, dtype=np.int64)
    lines = numbers[:, None] + np.arange(LINES_PER_WARP, dtype=np.int64) * warps  # of a step, for every operand
    is_active = np.stack([lines < operand.lines for operand in operands], axis=2)
    records = np.stack([operand.records(np.minimum(lines, operand.lines - 1)) for operand in operands], axis=2)
    # A load is used after the step's last load.
    after = np.cumsum(is_active[:, :, ::-1] & ~np.array([o.written for o in operands])[::-1], axis=2)[:, :, ::-1] - 1
    kinds = np.broadcast_to([OP_STORE if operand.written else OP_LOAD for operand in operands], is_active.shape)
    n_ops = is_active.sum(axis=(1, 2))
    ops = np.zeros(int(n_ops.sum()), OP_DTYPE)
    ops["kind"] = kinds[is_active]
    ops["n_lines"], ops["bytes_per_lane"] = 1, 4
    ops["gap_instructions"] = COMPUTE_GAP + extra
    ops["use_distance"] = np.where(ops["kind"] == OP_LOAD, 1 + after[is_active] * (COMPUTE_GAP + extra + 1), 0)
    ops["first_line"] = np.arange(len(ops))
    records_of_warps = np.zeros(len(numbers), WARP_DTYPE)
    records_of_warps["warp"] = numbers % WARPS_PER_BLOCK
    records_of_warps["n_ops"] = n_ops
    records_of_warps["first_op"] = np.cumsum(n_ops) - n_ops
    records_of_warps["tail_gap_instructions"] = TAIL
    busy = n_ops > 0
    ops["gap_instructions"][records_of_warps["first_op"][busy]] += FIRST_COMPUTE_GAP - COMPUTE_GAP
    blocks = np.zeros(len(numbers) // WARPS_PER_BLOCK, BLOCK_DTYPE)
    blocks["block"] = numbers[::WARPS_PER_BLOCK] // WARPS_PER_BLOCK
    blocks["n_warps"] = WARPS_PER_BLOCK
    blocks["first_warp"] = np.arange(len(blocks)) * WARPS_PER_BLOCK
    writer.add_blocks(blocks, records_of_warps, ops, np.ascontiguousarray(records[is_active]))
