"""Regular kernels: every warp of every block runs the same instructions, on lines of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from buddysim.trace import (
    BLOCK_DTYPE,
    FLAG_BYPASS_L1,
    FLAG_TIMED,
    OP_DTYPE,
    OP_LOAD,
    OP_STORE,
    WARP_DTYPE,
    TraceWriter,
)

LINE_BYTES = 128
ALL_SECTORS = 0xF
RECORDS_AT_ONCE = 2**18
"""Operations and lines that are in memory at a time while a kernel is written."""

LinesOf = Callable[[npt.NDArray[np.uint64]], npt.NDArray[np.uint64]]


def load(
    *,
    lines: int = 1,
    bytes_per_lane: int = 4,
    gap: int = 0,
    use_distance: int = 1,
    timed: bool = True,
    bypass_l1: bool = False,
) -> npt.NDArray[np.void]:
    """A load; where it is timed, `gap` instructions before it are independent of what came before them."""
    return _operation(OP_LOAD, lines, bytes_per_lane, gap, use_distance, timed, FLAG_BYPASS_L1 if bypass_l1 else 0)


def store(*, lines: int = 1, bytes_per_lane: int = 4, gap: int = 0, timed: bool = True) -> npt.NDArray[np.void]:
    """A store."""
    return _operation(OP_STORE, lines, bytes_per_lane, gap, 0, timed, 0)


def _operation(
    kind: int, lines: int, bytes_per_lane: int, gap: int, use_distance: int, timed: bool, flags: int
) -> npt.NDArray[np.void]:
    operation = np.zeros(1, dtype=OP_DTYPE)
    operation["kind"] = kind
    operation["n_lines"] = lines
    operation["bytes_per_lane"] = bytes_per_lane
    operation["gap"] = gap
    operation["use_distance"] = use_distance
    operation["flags"] = flags | (FLAG_TIMED if timed else 0)
    return operation


def line_records(
    base: int,
    entries: npt.NDArray[np.uint64],
    sectors: npt.NDArray[np.uint64] | int = ALL_SECTORS,
    written_whole: npt.NDArray[np.uint64] | int = 0,
) -> npt.NDArray[np.uint64]:
    """Lines as a trace has them, of entries counted from `base`, with the masks of `trace/records.pxd`."""
    lines = np.asarray(entries, dtype=np.uint64) + np.uint64(base // LINE_BYTES)
    masks = np.asarray(written_whole, dtype=np.uint64) << np.uint64(4) | np.asarray(sectors, dtype=np.uint64)
    return lines << np.uint64(8) | masks


def write_kernel(
    writer: TraceWriter,
    name: str,
    *,
    blocks: int,
    warps_per_block: int,
    operations: Sequence[npt.NDArray[np.void]],
    repeats: int,
    lines_of: LinesOf,
) -> None:
    """A kernel in which each warp does `operations` in turn, `repeats` times over.

    Parameters
    ----------
    writer : takes the kernel
    name : of the kernel
    blocks, warps_per_block : the grid, of whole warps
    operations : what a warp does, all with the same number of lines
    repeats : how often it does so
    lines_of : gets the numbers of some blocks, in the shape (blocks, 1, 1, 1, 1); gives their lines, in the shape
        (blocks, warps, repeats, operations, lines of an operation)
    """
    turn = np.concatenate(operations)
    per_operation = int(turn["n_lines"][0])
    per_block = warps_per_block * repeats * len(turn)
    at_once = max(1, RECORDS_AT_ONCE // (per_block * max(1, per_operation)))
    writer.begin_kernel(name, (blocks, 1, 1), (32 * warps_per_block, 1, 1), registers=32)
    for first in range(0, blocks, at_once):
        numbers = np.arange(first, min(first + at_once, blocks), dtype=np.uint64)
        ops = np.tile(turn, len(numbers) * warps_per_block * repeats)
        ops["first_line"] = np.arange(len(ops), dtype=np.uint32) * per_operation
        lines = lines_of(numbers.reshape(-1, 1, 1, 1, 1))
        shape = (len(numbers), warps_per_block, repeats, len(turn), per_operation)
        lines = np.ascontiguousarray(np.broadcast_to(lines, shape), dtype=np.uint64).reshape(-1)
        writer.add_blocks(*_frames(numbers, warps_per_block, repeats * len(turn)), ops, lines)
    writer.end_kernel()


def _frames(
    numbers: npt.NDArray[np.uint64], warps_per_block: int, ops_per_warp: int
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """Block and warp records around equally long warps."""
    blocks = np.zeros(len(numbers), dtype=BLOCK_DTYPE)
    blocks["block"] = numbers
    blocks["n_warps"] = warps_per_block
    blocks["first_warp"] = np.arange(len(numbers)) * warps_per_block
    warps = np.zeros(len(numbers) * warps_per_block, dtype=WARP_DTYPE)
    warps["warp"] = np.tile(np.arange(warps_per_block), len(numbers))
    warps["n_ops"] = ops_per_warp
    warps["first_op"] = np.arange(len(warps)) * ops_per_warp
    return blocks, warps
