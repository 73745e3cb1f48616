"""Page faults of the CPU: what the driver counts while a program initialises its arrays and reads its result back.

A fault of the CPU brings its 64 KiB and what the prefetch tree of its block of 2 MiB adds: the largest aligned group of
which more than 51 % is then on the host (NVIDIA's open kernel modules, uvm_perf_prefetch.c). So the faults of a block
follow from the order in which its places are touched first, and their number tells which arrays share a block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buddysim.validation.paging.space import BLOCK, PIECE, ManagedLayout

LEAVES = BLOCK // PIECE
THRESHOLD_PERCENT = 51
WORD = 4


@dataclass(frozen=True)
class OnHost:
    """What a program does on the CPU.

    Attributes
    ----------
    arrays : bytes of each array, in the order of their allocation
    loops : loops that write arrays from their beginning on: of each, bytes of an element by array, in program order
    result : the array that is read in the end
    """

    arrays: Mapping[str, int]
    loops: Sequence[Mapping[str, int]]
    result: str


def _fdtd(side: int) -> OnHost:
    field, longer = WORD * side * side, WORD * side * (side + 1)
    arrays = {"fict": 5 * WORD, "ex": longer, "ey": longer, "hz": field}
    return OnHost(arrays, [{name: WORD} for name in arrays], "hz")


def _bfs(nodes: int) -> OnHost:
    masks = ("mask", "updating", "visited")
    edges = 6 * WORD * nodes  # as many as the generator draws on average
    arrays = {"nodes": 8 * nodes, **dict.fromkeys(masks, nodes), "edges": edges, "cost": WORD * nodes}
    return OnHost(arrays, [{"nodes": 8, **dict.fromkeys(masks, 1)}, {"edges": WORD}, {"cost": WORD}], "cost")


def _two_of_three(first: str, between: str, last: str, result: str) -> OnHost:
    return OnHost(dict.fromkeys((first, between, last), 4 * 2**20), [{first: WORD}, {last: WORD}], result)


ON_HOST = {
    "bfs": _bfs(261_444),
    "fdtd": _fdtd(1200),
    "hotspot": _two_of_three("temp0", "temp1", "power", "temp0"),
    "ra": _two_of_three("input", "output", "table", "output"),
}


class Host:
    """The pieces of 64 KiB that are on the host, and the faults of the CPU so far."""

    def __init__(self) -> None:
        self.blocks: dict[int, npt.NDArray[np.bool_]] = {}
        self.faults = 0

    def touch(self, piece: int) -> None:
        """The CPU reads or writes in a piece, counted from address 0 on."""
        there = self.blocks.setdefault(piece // LEAVES, np.zeros(LEAVES, np.bool_))
        leaf = piece % LEAVES
        if there[leaf]:
            return
        self.faults += 1
        there[leaf] = True
        group = slice(leaf, leaf + 1)
        for size in (2, 4, 8, 16, LEAVES):
            wider = slice(leaf // size * size, leaf // size * size + size)
            if 100 * int(there[wider].sum()) > THRESHOLD_PERCENT * size:
                group = wider
        there[group] = True

    def give(self, base: int, size: int) -> None:
        """Moves the blocks of an array to the device."""
        for block in range(base // BLOCK, (base + size - 1) // BLOCK + 1):
            self.blocks[block] = np.zeros(LEAVES, np.bool_)


def addresses(program: OnHost, placement: ManagedLayout) -> dict[str, int]:
    """Of its arrays."""
    return {name: placement.place(size) for name, size in program.arrays.items()}


def initialised(program: OnHost, base: Mapping[str, int]) -> Host:
    """The host when all arrays have been written."""
    host = Host()
    for loop in program.loops:
        touched = []
        for order, (name, element) in enumerate(loop.items()):
            for piece in range(base[name] // PIECE, (base[name] + program.arrays[name] - 1) // PIECE + 1):
                touched.append((max(0, piece * PIECE - base[name]) // element, order, piece))
        for _, _, piece in sorted(touched):
            host.touch(piece)
    return host


def reading(host: Host, program: OnHost, base: Mapping[str, int]) -> int:
    """Faults of reading the result, in order."""
    before, first = host.faults, base[program.result]
    for piece in range(first // PIECE, (first + program.arrays[program.result] - 1) // PIECE + 1):
        host.touch(piece)
    return host.faults - before


def expected(program: OnHost, placement: ManagedLayout | None = None) -> tuple[int, int]:
    """Least and most CPU faults of a run.

    The most are those with all blocks of the result on the device in the end. The least: all of it has been
    evicted; then it is on the host, but not mapped, so each of its blocks takes one fault.
    """
    base = addresses(program, placement or ManagedLayout())
    host = initialised(program, base)
    start, size = base[program.result], program.arrays[program.result]
    blocks = (start + size - 1) // BLOCK - start // BLOCK + 1
    least = host.faults + blocks
    host.give(start, size)
    return least, host.faults + reading(host, program, base)
