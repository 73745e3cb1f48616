"""Page faults of the CPU: the driver's count while a program initialises its arrays and reads its result back.

A fault of the CPU migrates its 64 KiB to the host, and the range that the prefetch tree of its VA block (2 MiB) adds:
the largest aligned group of which more than 51 % is then on the host (NVIDIA's open kernel modules,
uvm_perf_prefetch.c). So the faults of a VA block follow from the order in which its addresses are first accessed, and
their number reveals which arrays share a VA block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buddysim.validation.paging.space import BLOCK, TREE_PAGE, ManagedLayout

LEAVES = BLOCK // TREE_PAGE
THRESHOLD_PERCENT = 51
WORD = 4


@dataclass(frozen=True)
class OnHost:
    """The accesses of a program on the CPU.

    Attributes
    ----------
    arrays : bytes of each array, in the order of their allocation
    loops : loops that write arrays from their first byte: bytes of an element by array, in program order
    result : the array that is read at the end
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
    edges = 6 * WORD * nodes  # the mean of the generator
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
    """The pages of 64 KiB that are on the host, and the faults of the CPU so far."""

    def __init__(self) -> None:
        self.blocks: dict[int, npt.NDArray[np.bool_]] = {}
        self.faults = 0

    def access(self, page: int) -> None:
        """Record an access of the CPU to a 64 KiB page, numbered from address 0."""
        on_host = self.blocks.setdefault(page // LEAVES, np.zeros(LEAVES, np.bool_))
        leaf = page % LEAVES
        if on_host[leaf]:
            return
        self.faults += 1
        on_host[leaf] = True
        group = slice(leaf, leaf + 1)
        for size in (2, 4, 8, 16, LEAVES):
            wider = slice(leaf // size * size, leaf // size * size + size)
            if 100 * int(on_host[wider].sum()) > THRESHOLD_PERCENT * size:
                group = wider
        on_host[group] = True

    def migrate_to_device(self, base: int, size: int) -> None:
        """Migrate the VA blocks of an array to the device."""
        for block in range(base // BLOCK, (base + size - 1) // BLOCK + 1):
            self.blocks[block] = np.zeros(LEAVES, np.bool_)


def array_addresses(program: OnHost, layout: ManagedLayout) -> dict[str, int]:
    """Return the addresses of a program's arrays."""
    return {name: layout.allocate(size) for name, size in program.arrays.items()}


def initialised_host(program: OnHost, base: Mapping[str, int]) -> Host:
    """Return the host after the program has initialised its arrays."""
    host = Host()
    for loop in program.loops:
        accesses = []
        for order, (name, element) in enumerate(loop.items()):
            for page in range(base[name] // TREE_PAGE, (base[name] + program.arrays[name] - 1) // TREE_PAGE + 1):
                accesses.append((max(0, page * TREE_PAGE - base[name]) // element, order, page))
        for _, _, page in sorted(accesses):
            host.access(page)
    return host


def read_faults(host: Host, program: OnHost, base: Mapping[str, int]) -> int:
    """Return the faults of reading the result in address order."""
    before, first = host.faults, base[program.result]
    for page in range(first // TREE_PAGE, (first + program.arrays[program.result] - 1) // TREE_PAGE + 1):
        host.access(page)
    return host.faults - before


def expected_faults(program: OnHost, layout: ManagedLayout | None = None) -> tuple[int, int]:
    """Return the fewest and the most CPU faults of a run.

    The most: all VA blocks of the result are on the device at the end. The fewest: the result has been evicted; then it
    is on the host, but not mapped, so each of its VA blocks takes one fault.
    """
    base = array_addresses(program, layout or ManagedLayout())
    host = initialised_host(program, base)
    start, size = base[program.result], program.arrays[program.result]
    blocks = (start + size - 1) // BLOCK - start // BLOCK + 1
    fewest = host.faults + blocks
    host.migrate_to_device(start, size)
    return fewest, host.faults + read_faults(host, program, base)
