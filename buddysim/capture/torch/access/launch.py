"""Kernels in the style of CUDA: the address of every lane at every memory instruction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from buddysim.capture.torch.access.coalesce import coalesce
from buddysim.capture.torch.access.tile_addresses import TileAddresses
from buddysim.importers.opencl.assumptions import COMPUTE_GAP, FIRST_COMPUTE_GAP, TAIL
from buddysim.trace import (
    BLOCK_DTYPE,
    FLAG_NO_RETURN,
    OP_ATOMIC,
    OP_BARRIER,
    OP_DTYPE,
    OP_LOAD,
    OP_STORE,
    WARP_DTYPE,
    TraceWriter,
)

LANES: Final = 32
OFF: Final = -1
_AT_ONCE: Final = 1 << 16  # instructions whose lane addresses are in memory at a time
_WIDEST: Final = 16  # bytes that a lane moves at once
Addresses = NDArray[np.int64]


@dataclass(frozen=True)
class Access:
    """A memory instruction of every warp of some thread blocks.

    Attributes
    ----------
    kind : `OP_LOAD`, `OP_STORE`, `OP_ATOMIC` or `OP_BARRIER`
    addresses : int64, broadcasts to (blocks, warps, 32), or of a product's tiles; `OFF` where a lane is off. A warp
        with no lane on skips it
    bytes_per_lane : 1 to 16, a power of 2
    gap_instructions : other instructions of the warp before it
    use : of a load: further instructions until the first use of its result
    """

    kind: int
    addresses: Addresses | TileAddresses
    bytes_per_lane: int = 4
    gap_instructions: int = COMPUTE_GAP
    use: int = 1


@dataclass(frozen=True)
class AccessLoop:
    """Instructions that some thread blocks repeat.

    Attributes
    ----------
    accesses : of an iteration; those of a product's tiles advance with it
    iterations : number of them
    first_gap : other instructions before the first one, in the first iteration
    """

    accesses: tuple[Access, ...]
    iterations: int
    first_gap: int

    @property
    def steps(self) -> int:
        """Number of memory instructions and barriers of a warp."""
        return len(self.accesses) * self.iterations

    def __iter__(self) -> Iterator[Access]:
        for iteration in range(self.iterations):
            for index, access in enumerate(self.accesses):
                addresses = access.addresses
                if isinstance(addresses, TileAddresses):
                    addresses = addresses.at(iteration)
                gap = access.gap_instructions if iteration or index else self.first_gap
                yield replace(access, addresses=addresses, gap_instructions=gap)


@dataclass(frozen=True)
class ModelledKernel:
    """A kernel.

    Attributes
    ----------
    name : of the kernel
    blocks, warps : the grid: thread blocks, and whole warps of each
    steps : approximate memory instructions of a warp
    program : function from the numbers of some blocks, int64 (blocks, 1, 1), to their warps' instructions and loops
    """

    name: str
    blocks: int
    warps: int
    steps: int
    program: Callable[[Addresses], Iterator[Access | AccessLoop]]
    registers: int = 32
    shared_bytes: int = 0

    def accesses(self, blocks: Addresses) -> Iterator[Access]:
        """Yield the instructions of some blocks, one by one."""
        for one in self.program(blocks):
            yield from _loop(one)

    @property
    def instructions(self) -> int:
        """Approximate number of memory instructions."""
        return self.blocks * self.of_a_block

    @property
    def of_a_block(self) -> int:
        """Approximate number of memory instructions of a thread block."""
        return self.warps * max(self.steps, 1)


class Moves(Protocol):
    """`load` or `store`."""

    def __call__(
        self, addresses: ArrayLike, bytes_per_lane: int = 4, gap_instructions: int = COMPUTE_GAP
    ) -> Access: ...


def load(
    addresses: ArrayLike | TileAddresses, bytes_per_lane: int = 4, gap_instructions: int = COMPUTE_GAP, use: int = 1
) -> Access:
    return Access(OP_LOAD, _of_lanes(addresses), bytes_per_lane, gap_instructions, use)


def store(addresses: ArrayLike | TileAddresses, bytes_per_lane: int = 4, gap_instructions: int = COMPUTE_GAP) -> Access:
    return Access(OP_STORE, _of_lanes(addresses), bytes_per_lane, gap_instructions)


def _of_lanes(addresses: ArrayLike | TileAddresses) -> Addresses | TileAddresses:
    return addresses if isinstance(addresses, TileAddresses) else np.asarray(addresses, np.int64)


def runs(
    access: Moves,
    address: Addresses | int,
    size: int,
    first: Addresses,
    elements: Addresses | int,
    each: int,
    gap_instructions: int,
) -> Iterator[Access]:
    """Yield the accesses of lanes to contiguous elements, in chunks of up to 16 B; at the tensor's end, one by one.

    Parameters
    ----------
    access : `load` or `store`
    address, size : address of the first element, bytes of an element
    first, each : a lane's first element, and number of its elements: a power of 2
    elements : of the tensor
    """
    chunk = min(each, _WIDEST // size)
    for start in range(0, each, chunk):
        number = first + start
        whole = number + chunk <= elements
        yield access(np.where(whole, address + number * size, OFF), chunk * size, gap_instructions)
        for at in (number + left for left in range(chunk - 1)):
            alone = (at < elements) & ~whole
            if alone.any():
                yield access(np.where(alone, address + at * size, OFF), size, gap_instructions)


def add_atomically(addresses: ArrayLike | TileAddresses, gap_instructions: int = COMPUTE_GAP) -> Access:
    """Return an atomic addition to 4 B whose result is not read."""
    return Access(OP_ATOMIC, _of_lanes(addresses), 4, gap_instructions)


def barrier() -> Access:
    return Access(OP_BARRIER, np.full((1, 1, 1), OFF, np.int64), 1, 0)


def threads(warps: int) -> Addresses:
    """Return the number of each thread in its block: int64 (1, warps, 32)."""
    return np.arange(warps * LANES, dtype=np.int64).reshape(1, warps, LANES)


def write_launch(writer: TraceWriter, launch: ModelledKernel, launch_index: int) -> None:
    """Write a kernel after `launch_index` launches."""
    writer.begin_kernel(
        launch.name,
        (launch.blocks, 1, 1),
        (LANES * launch.warps, 1, 1),
        registers=launch.registers,
        shared_memory_bytes=launch.shared_bytes,
        launch_index=launch_index,
    )
    at_once = max(1, _AT_ONCE // (launch.warps * max(launch.steps, 1)))
    for first in range(0, launch.blocks, at_once):
        numbers = np.arange(first, min(first + at_once, launch.blocks), dtype=np.int64)
        _write_blocks(writer, launch, numbers)
    writer.end_kernel()


def _loop(one: Access | AccessLoop) -> AccessLoop:
    return one if isinstance(one, AccessLoop) else AccessLoop((one,), 1, one.gap_instructions)


def _write_blocks(writer: TraceWriter, launch: ModelledKernel, numbers: Addresses) -> None:
    loops = [_loop(one) for one in launch.program(numbers.reshape(-1, 1, 1))]
    shape = (len(numbers), launch.warps, LANES)
    n_warps, n_steps = len(numbers) * launch.warps, sum(loop.steps for loop in loops)
    addresses = np.empty((n_warps, n_steps, LANES), np.int64)
    kinds, sizes = np.empty(n_steps, np.uint8), np.empty(n_steps, np.uint8)
    gaps, uses = np.empty(n_steps, np.uint32), np.zeros(n_steps, np.uint32)
    first = 0
    for loop in loops:
        for index, access in enumerate(loop.accesses):
            steps = slice(first + index, first + loop.steps, len(loop.accesses))
            kinds[steps], sizes[steps], gaps[steps] = access.kind, access.bytes_per_lane, access.gap_instructions
            if access.kind == OP_LOAD:
                uses[steps] = access.use
            if isinstance(access.addresses, TileAddresses):
                access.addresses.fill(addresses[:, steps])
            else:
                of_warps = np.broadcast_to(access.addresses, shape).reshape(n_warps, 1, LANES)
                addresses[:, steps] = of_warps
        gaps[first] = loop.first_gap
        first += loop.steps
    counts, lines = coalesce(addresses.reshape(-1, LANES), sizes, (kinds == OP_STORE).astype(np.uint8))
    counts = counts.reshape(n_warps, n_steps)
    is_active = (counts > 0) | (kinds == OP_BARRIER)
    ops = np.zeros((n_warps, n_steps), OP_DTYPE)
    ops["kind"], ops["bytes_per_lane"] = kinds, sizes
    ops["gap_instructions"], ops["use_distance"] = gaps, uses
    ops["flags"] = np.where(kinds == OP_ATOMIC, FLAG_NO_RETURN, 0)
    ops["n_lines"] = counts
    ops["bytes_per_lane"][:, kinds == OP_BARRIER] = 0
    ops = ops[is_active]
    counts = ops["n_lines"].astype(np.int64)
    ops["first_line"] = np.cumsum(counts) - counts
    warps = np.zeros(n_warps, WARP_DTYPE)
    warps["warp"] = np.tile(np.arange(launch.warps), len(numbers))
    warps["n_ops"] = is_active.sum(axis=1)
    warps["first_op"] = np.cumsum(warps["n_ops"]) - warps["n_ops"]
    warps["tail_gap_instructions"] = TAIL
    ops["gap_instructions"][warps["first_op"][warps["n_ops"] > 0]] += FIRST_COMPUTE_GAP
    blocks = np.zeros(len(numbers), BLOCK_DTYPE)
    blocks["block"], blocks["n_warps"] = numbers, launch.warps
    blocks["first_warp"] = np.arange(len(numbers)) * launch.warps
    writer.add_blocks(blocks, warps, ops, lines)
