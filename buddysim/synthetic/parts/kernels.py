"""Regular kernels: every warp of every thread block executes the same instructions, on lines of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from buddysim.trace import (
    BANK_WORDS_SHIFT,
    BLOCK_DTYPE,
    FLAG_BYPASS_L1,
    FLAG_TIMED,
    OP_DTYPE,
    OP_LOAD,
    OP_STORE,
    WARP_DTYPE,
    TraceWriter,
)
from buddysim.trace.format import LINE_BYTES

ALL_SECTORS = 0xF
RECORDS_AT_ONCE = 2**18
"""Operations or lines of a kernel that are in memory at a time while it is written."""

LinesOf = Callable[[npt.NDArray[np.uint64]], npt.NDArray[np.uint64]]


def load(
    *,
    lines: int = 1,
    bytes_per_lane: int = 4,
    gap_instructions: int = 0,
    use_distance: int = 1,
    timed: bool = True,
    bypass_l1: bool = False,
    bank_words: int = 0,
) -> npt.NDArray[np.void]:
    """Return the record of a load.

    Parameters
    ----------
    lines : number of 128 B lines that its lanes touch
    bytes_per_lane : bytes that each lane loads
    gap_instructions : other instructions of the warp before it
    use_distance : instructions from the load to the first use of its result; 0: nothing uses it
    timed : whether the compute gap's instructions are independent; otherwise a run assumes their latencies
    bypass_l1 : whether the L2 always serves it
    bank_words : bank words of its lanes' addresses (`trace.coalesce.bank_words_of`); 0: unknown

    Returns
    -------
    one record of OP_DTYPE
    """
    flags = (FLAG_BYPASS_L1 if bypass_l1 else 0) | bank_words << BANK_WORDS_SHIFT
    return _operation(OP_LOAD, lines, bytes_per_lane, gap_instructions, use_distance, timed, flags)


def store(
    *, lines: int = 1, bytes_per_lane: int = 4, gap_instructions: int = 0, timed: bool = True
) -> npt.NDArray[np.void]:
    """Return the record of a store; the parameters are those of `load`."""
    return _operation(OP_STORE, lines, bytes_per_lane, gap_instructions, 0, timed, 0)


def _operation(
    kind: int, lines: int, bytes_per_lane: int, gap_instructions: int, use_distance: int, timed: bool, flags: int
) -> npt.NDArray[np.void]:
    operation = np.zeros(1, dtype=OP_DTYPE)
    operation["kind"] = kind
    operation["n_lines"] = lines
    operation["bytes_per_lane"] = bytes_per_lane
    operation["gap_instructions"] = gap_instructions
    operation["use_distance"] = use_distance
    operation["flags"] = flags | (FLAG_TIMED if timed else 0)
    return operation


def line_records(
    base: int,
    entries: npt.NDArray[np.uint64],
    sectors: npt.NDArray[np.uint64] | int = ALL_SECTORS,
    written_whole: npt.NDArray[np.uint64] | int = 0,
) -> npt.NDArray[np.uint64]:
    """Return the line records of a trace (`trace/records.pxd`).

    Parameters
    ----------
    base : address of the allocation
    entries : numbers of its 128 B entries, of any shape
    sectors : mask of the sectors that are touched, bit 0 for the first
    written_whole : mask of the sectors of which a store writes all 32 bytes; 0 for loads

    Returns
    -------
    uint64, of the shape that the arrays broadcast to
    """
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
    threads: int | None = None,
    shared_memory: int = 0,
    tail_gap_instructions: int = 0,
) -> None:
    """Write a kernel in which each warp executes `operations` in order, `repeats` times.

    Parameters
    ----------
    writer : takes the kernel
    name : of the kernel
    blocks, warps_per_block : the grid: thread blocks, and whole warps of each
    operations : records of a warp's memory instructions in one iteration
    repeats : iterations of each warp
    lines_of : function from the numbers of some blocks, uint64 (blocks, 1, 1, 1), to their line records. The result
        broadcasts to (blocks, warps, repeats, lines of an iteration), with the lines of the first operation first
    threads : of each block, if the last warp is incomplete
    shared_memory : bytes that each block takes
    tail_gap_instructions : instructions of each warp after its last operation
    """
    lines_of_iteration = np.concatenate(operations)
    lines_per_iteration = int(lines_of_iteration["n_lines"].sum())
    iterations_per_block = warps_per_block * repeats
    at_once = max(1, RECORDS_AT_ONCE // (iterations_per_block * max(len(lines_of_iteration), lines_per_iteration)))
    first_line = np.cumsum(lines_of_iteration["n_lines"], dtype=np.uint32) - lines_of_iteration["n_lines"]
    size = (threads or 32 * warps_per_block, 1, 1)
    writer.begin_kernel(name, (blocks, 1, 1), size, registers=32, shared_memory_bytes=shared_memory)
    for first in range(0, blocks, at_once):
        numbers = np.arange(first, min(first + at_once, blocks), dtype=np.uint64)
        iterations = len(numbers) * iterations_per_block
        ops = np.tile(lines_of_iteration, iterations)
        ops["first_line"] = (
            np.arange(iterations, dtype=np.uint32)[:, None] * lines_per_iteration + first_line
        ).reshape(-1)
        lines = lines_of(numbers.reshape(-1, 1, 1, 1))
        shape = (len(numbers), warps_per_block, repeats, lines_per_iteration)
        lines = np.ascontiguousarray(np.broadcast_to(lines, shape), dtype=np.uint64).reshape(-1)
        block_records, warps = frames(numbers, warps_per_block, repeats * len(lines_of_iteration))
        warps["tail_gap_instructions"] = warps["tail_critical_path_cycles"] = tail_gap_instructions
        writer.add_blocks(block_records, warps, ops, lines)
    writer.end_kernel()


def frames(
    numbers: npt.NDArray[np.uint64], warps_per_block: int, ops_per_warp: int
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """Return block and warp records of equally long warps."""
    blocks = np.zeros(len(numbers), dtype=BLOCK_DTYPE)
    blocks["block"] = numbers
    blocks["n_warps"] = warps_per_block
    blocks["first_warp"] = np.arange(len(numbers)) * warps_per_block
    warps = np.zeros(len(numbers) * warps_per_block, dtype=WARP_DTYPE)
    warps["warp"] = np.tile(np.arange(warps_per_block), len(numbers))
    warps["n_ops"] = ops_per_warp
    warps["first_op"] = np.arange(len(warps)) * ops_per_warp
    return blocks, warps
