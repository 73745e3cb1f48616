"""Verification of a trace file: every checksum, every reference, every count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buddysim.trace.codec import count_instructions
from buddysim.trace.live import LiveAllocations
from buddysim.trace.model import Allocation, Chunk, ChunkRef, Event, KernelLaunch, Memcpy, Memset
from buddysim.trace.reader import Kernel, Trace

# First byte in its line of the last sector that a mask touches.
_LAST_SECTOR = np.array([max(mask.bit_length() - 1, 0) * 32 for mask in range(16)], np.uint64)


@dataclass(frozen=True)
class VerificationSummary:
    """Counts of a whole file, every checksum and reference of which is right."""

    sections: int
    allocations: int
    events: int
    kernels: int
    chunks: int
    blocks: int
    warp_instructions: int
    memory_instructions: int
    line_accesses: int
    snapshots: int
    contents_bytes: int
    size_map_entries: int


def verify_trace(trace: Trace, progress: Callable[[int], object] = lambda done: None) -> VerificationSummary:
    """Read all of a trace; TraceFileError at the first thing that is wrong.

    Checksums, layout, order of sections, overlap of allocations and counts of kernels were checked when the trace was
    opened. This adds what needs the contents, and refuses an interrupted file.

    Parameters
    ----------
    progress : called with the number of sections read so far
    """
    file = trace.file
    if file.interrupted_at is not None:
        n_chunks = sum(len(kernel.chunks) for kernel in trace.kernels)
        file.fail(
            "footer",
            file.interrupted_at,
            f"missing: the file was interrupted; before that it has {len(file.index)} complete sections, "
            f"{n_chunks} of them chunks, which can be read",
        )
    done = 0
    for index, event, live in live_at_events(trace):
        if not isinstance(event, KernelLaunch):
            _check_ranges(trace, index, event, live)
            continue
        kernel = trace.kernels[event.kernel]
        lines = LiveLines(live)
        seen = np.zeros(-(-kernel.grid_blocks // 8), np.uint8)  # a bit per block; untouched pages take no memory
        for number, ref in enumerate(kernel.chunks):
            _check_chunk(trace, kernel, number, ref, lines, seen)
            done += 1
            progress(done)
    contents_bytes = size_map_entries = 0
    for snapshot in trace.snapshots:
        for contents in snapshot.contents:
            for _, data in contents.blocks():
                contents_bytes += len(data)
                done += 1
                progress(done)
    for size_map in trace.size_maps:
        for _, classes in size_map.blocks():
            size_map_entries += len(classes)
            done += 1
            progress(done)
    return VerificationSummary(
        sections=len(file.index),
        allocations=len(trace.allocations),
        events=len(trace.events),
        kernels=len(trace.kernels),
        chunks=sum(len(kernel.chunks) for kernel in trace.kernels),
        blocks=sum(kernel.n_blocks for kernel in trace.kernels),
        warp_instructions=sum(kernel.warp_instructions for kernel in trace.kernels),
        memory_instructions=sum(kernel.memory_instructions for kernel in trace.kernels),
        line_accesses=sum(kernel.line_accesses for kernel in trace.kernels),
        snapshots=len(trace.snapshots),
        contents_bytes=contents_bytes,
        size_map_entries=size_map_entries,
    )


def live_at_events(trace: Trace) -> Iterator[tuple[int, Event, LiveAllocations]]:
    """Every event with its index and the allocations that are live then."""
    allocated: dict[int, list[Allocation]] = defaultdict(list)
    freed: dict[int, list[Allocation]] = defaultdict(list)
    for allocation in trace.allocations:
        if allocation.alloc_event != allocation.free_event:
            allocated[allocation.alloc_event].append(allocation)
            if allocation.free_event is not None:
                freed[allocation.free_event].append(allocation)
    live = LiveAllocations()
    for index, event in enumerate(trace.events):
        for allocation in freed[index]:
            live.remove(allocation)
        for allocation in allocated[index]:
            live.add(allocation)
        yield index, event, live


class LiveLines:
    """Checks that lines lie in live allocations."""

    def __init__(self, live: LiveAllocations) -> None:
        self._bases = np.array([0, *(allocation.base for allocation in live)], np.uint64)
        self._ends = np.array([0, *(allocation.end for allocation in live)], np.uint64)

    def first_outside(self, lines: npt.NDArray[np.uint64]) -> int | None:
        """Index of the first line that touches a sector outside every allocation."""
        start = lines >> np.uint64(8) << np.uint64(7)
        allocation = np.searchsorted(self._bases, start, "right") - 1
        last_sector = start + _LAST_SECTOR[(lines & np.uint64(15)).astype(np.intp)]
        outside = last_sector >= self._ends[allocation]
        return int(np.argmax(outside)) if outside.any() else None


def _check_ranges(trace: Trace, index: int, event: Memcpy | Memset, live: LiveAllocations) -> None:
    ranges = [("", event.address)]
    if isinstance(event, Memcpy) and event.source is not None and event.kind == "dtod":
        ranges.append(("source ", event.source))
    for what, address in ranges:
        if event.bytes and live.containing(address, address + event.bytes) is None:
            trace.file.fail(
                f"event {index} ({type(event).__name__.lower()})",
                trace.event_offsets[index],
                f"its {what}range of {event.bytes} bytes at {address:#x} lies in no live allocation",
            )


def _check_chunk(
    trace: Trace, kernel: Kernel, number: int, ref: ChunkRef, live: LiveLines, seen: npt.NDArray[np.uint8]
) -> None:
    chunk = trace.decode_chunk(ref)

    def fail(problem: str) -> None:
        trace.file.fail(f"chunk {number} of kernel {kernel.index}", ref.offset, problem)

    counts = count_instructions(chunk.warps, chunk.ops)
    if counts != (ref.warp_instructions, ref.memory_instructions):
        fail(
            f"its head says {ref.warp_instructions} warp and {ref.memory_instructions} memory instructions, "
            f"its records have {counts[0]} and {counts[1]}"
        )
    if (twice := _first_block_seen(chunk.blocks["block"], seen)) is not None:
        fail(f"block {twice} is in the kernel a second time")
    if (twice := _first_warp_twice(chunk)) is not None:
        fail(f"block {chunk.blocks['block'][twice]} has a warp twice")
    if (outside := live.first_outside(chunk.lines)) is not None:
        fail(_outside(chunk, outside))


def _first_block_seen(blocks: npt.NDArray[np.uint32], seen: npt.NDArray[np.uint8]) -> int | None:
    """A block that is marked in `seen` or occurs twice; the others are marked."""
    if np.any(blocks[1:] <= blocks[:-1]):
        ordered = np.sort(blocks)
        if np.any(same := ordered[1:] == ordered[:-1]):
            return int(ordered[np.argmax(same)])
    bits = (np.uint8(1) << (blocks & np.uint32(7)).astype(np.uint8)).astype(np.uint8)
    before = seen[blocks >> np.uint32(3)] & bits
    if before.any():
        return int(blocks[np.argmax(before != 0)])
    np.bitwise_or.at(seen, blocks >> np.uint32(3), bits)
    return None


def _first_warp_twice(chunk: Chunk) -> int | None:
    """Index of the first block in which a warp number occurs twice."""
    block = np.repeat(np.arange(len(chunk.blocks), dtype=np.uint64), chunk.blocks["n_warps"])
    keys = block << np.uint64(32) | chunk.warps["warp"]
    if np.any(keys[1:] <= keys[:-1]):
        keys.sort()
        if np.any(same := keys[1:] == keys[:-1]):
            return int(keys[np.argmax(same)] >> np.uint64(32))
    return None


def _outside(chunk: Chunk, line: int) -> str:
    op = int(np.searchsorted(chunk.ops["first_line"], line, "right")) - 1
    while chunk.ops["n_lines"][op] == 0:  # a barrier has the first line of the op after it
        op -= 1
    warp = int(np.searchsorted(chunk.warps["first_op"] + chunk.warps["n_ops"], op, "right"))
    block = int(np.searchsorted(chunk.blocks["first_warp"] + chunk.blocks["n_warps"], warp, "right"))
    address = int(chunk.lines[line]) >> 8 << 7
    return (
        f"op {op - int(chunk.warps['first_op'][warp])} of warp {chunk.warps['warp'][warp]} of block "
        f"{chunk.blocks['block'][block]} touches the line at {address:#x}, which lies in no live allocation"
    )
