"""The allocations and frees of a recorded training step, run through the caching allocator in order."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.training.autograd.records import AllocationEvent, FreeEvent
from buddysim.training.autograd.tape import Tape
from buddysim.training.caching_allocator.allocator import AllocationFailure, CudaAllocator
from buddysim.training.caching_allocator.blocks import SegmentBlock
from buddysim.training.caching_allocator.driver import DeviceMemory
from buddysim.training.options.allocator_settings import AllocatorSettings


@dataclass(frozen=True)
class AllocatorReplay:
    """What the allocator does with a tape's events.

    Attributes
    ----------
    peak_allocated_bytes, peak_active_bytes, peak_reserved_bytes : of blocks in use; of these and those that a stream
        may still use; of memory taken from the driver
    peak_requested_bytes : of the tensors, before they are rounded: the tape's own peak, with workspaces
    peak_allocated_event, peak_reserved_event : index of the tape's event at which they are first reached
    reserved : index of an event and the bytes reserved after it, at each change
    allocated_at_peak_reserved : bytes in use when the most is reserved
    segments : segments taken from the driver, pages of expandable ones counted each time that some are mapped
    retries : requests for which all cached memory was given back
    failure : event that fails for lack of memory, and its request; None if all fits
    """

    peak_allocated_bytes: int
    peak_active_bytes: int
    peak_reserved_bytes: int
    peak_requested_bytes: int
    peak_allocated_event: int
    peak_reserved_event: int
    reserved: tuple[tuple[int, int], ...]
    allocated_at_peak_reserved: int
    segments: int
    retries: int
    failure: tuple[int, AllocationFailure] | None


def replay_tape(
    tape: Tape, settings: AllocatorSettings | None = None, capacity: int | None = None, workspace: int = 0
) -> AllocatorReplay:
    """Replay a tape, with as many iterations as it has.

    Parameters
    ----------
    settings : of the allocator; the defaults if not given
    capacity : bytes that the driver has for it; None for no limit
    workspace : bytes that cuBLAS takes at the first matrix product of each thread: those of the forward and of the
        backward pass (PyTorch, ``aten/src/ATen/cuda/CublasHandlePool.cpp``)
    """
    allocator = CudaAllocator(settings, DeviceMemory(capacity))
    usage, allocate, free = allocator.usage, allocator.allocate, allocator.free
    streams = _streams(tape)
    blocks: dict[int, SegmentBlock] = {}
    threads: set[bool] = set()
    reserved: list[tuple[int, int]] = []
    peak = peak_event = peak_reserved_event = allocated_at_peak = last = max_reserved = 0
    failure = None
    for index, event in enumerate(tape.events):
        if isinstance(event, FreeEvent):
            if event.storage in blocks:
                free(blocks.pop(event.storage))
            continue
        if isinstance(event, AllocationEvent):
            number, size = event.storage, event.bytes
        elif workspace and event.products and (event.phase == "backward") not in threads:
            threads.add(event.phase == "backward")
            number, size = -len(threads), workspace
        else:
            continue
        if not size:
            continue
        try:
            blocks[number] = allocate(size, streams.get(number, 0))
        except AllocationFailure as error:
            failure = index, error
            break
        if usage.allocated > peak:
            peak, peak_event = usage.allocated, index
        if usage.reserved != last:
            if usage.reserved > max_reserved:
                max_reserved, peak_reserved_event, allocated_at_peak = usage.reserved, index, usage.allocated
            last = usage.reserved
            reserved.append((index, last))
    taken = sum(one.action in ("segment_alloc", "segment_map") for one in allocator.log.events)
    return AllocatorReplay(
        peak, usage.peak_active, usage.peak_reserved, usage.peak_requested, peak_event, peak_reserved_event,
        tuple(reserved), allocated_at_peak, taken, allocator.retries, failure,
    )  # fmt: skip


def _streams(tape: Tape) -> dict[int, int]:
    """Number of the stream of each storage that another one than the compute stream writes first.

    Memory is of the stream that is current when it is allocated, and is served to requests of that stream alone.
    """
    streams: dict[int, int] = {}
    if all(operation.stream == "compute" for operation in tape.operations):
        return streams
    numbers: dict[str, int] = {"compute": 0}
    for operation in tape.operations:
        number = numbers.setdefault(operation.stream, len(numbers))
        for operand in operation.writes:
            streams.setdefault(operand.storage, number)
    return streams
