"""Small random programs as data, which can be written as traces in several equivalent ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import buddysim.trace as bt
from tests.trace.builders import records

PAGE = 2 << 20  # bytes; where allocations lie within it is kept by every run
BASE = 1 << 33

Access = tuple[int, list[tuple[int, int, int, int]]]  # kind, lines of (array, line, sectors, whole)


@dataclass(frozen=True)
class Array:
    """An allocation, and its entries' size classes in each snapshot."""

    name: str
    base: int
    entries: int
    classes: Sequence[NDArray[np.uint8]]


@dataclass(frozen=True)
class Program:
    """Kernels over arrays; a snapshot lies before the first kernel and after each one.

    Attributes
    ----------
    arrays : by number, as the kernels' accesses name them
    kernels : each a list of thread blocks of one list of accesses per warp
    repeated : whether every snapshot is written twice
    """

    arrays: Sequence[Array]
    kernels: Sequence[Sequence[Sequence[Sequence[Access]]]]
    repeated: bool = False
    names: Sequence[str] = field(default_factory=tuple)

    def write(self, path: Path) -> Path:
        """Write the program as a trace file."""
        with bt.TraceWriter(path, bt.Provenance("test")) as writer:
            numbers = {}
            for index in sorted(range(len(self.arrays)), key=lambda index: self.arrays[index].base):
                array = self.arrays[index]
                numbers[index] = writer.add_allocation(array.name, array.base, 128 * array.entries)
            taken = 0
            self._snapshots(writer, numbers, 0, taken)
            for number, blocks in enumerate(self.kernels):
                name = self.names[number] if self.names else f"kernel{number}"
                writer.begin_kernel(name, (len(blocks), 1, 1), (32 * len(blocks[0]), 1, 1), launch_index=number)
                writer.add_blocks(*records([(block, self._warps(warps)) for block, warps in enumerate(blocks)]))
                writer.end_kernel()
                self._snapshots(writer, numbers, number + 1, number + 1)
        return path

    def _snapshots(self, writer: bt.TraceWriter, numbers: dict[int, int], point: int, taken: int) -> None:
        for _ in range(1 + self.repeated):
            snapshot = writer.add_snapshot(point)
            for index, array in enumerate(self.arrays):
                writer.add_size_map(snapshot, numbers[index], array.classes[taken])

    def _warps(
        self, warps: Sequence[Sequence[Access]]
    ) -> list[tuple[dict[str, int], list[tuple[dict[str, int], list[int]]]]]:
        return [
            ({"warp": number}, [(self._fields(kind), self._lines(touched)) for kind, touched in warp])
            for number, warp in enumerate(warps)
        ]

    def _fields(self, kind: int) -> dict[str, int]:
        return {
            "kind": kind,
            "gap_instructions": 4,
            "use_distance": 0 if kind == bt.OP_STORE else 1,
            "bytes_per_lane": 4,
        }

    def _lines(self, touched: Sequence[tuple[int, int, int, int]]) -> list[int]:
        return [
            ((self.arrays[array].base >> 7) + line) << 8 | whole << 4 | sectors
            for array, line, sectors, whole in touched
        ]

    def moved(self, pages: int) -> Program:
        """Return the program with every array a number of pages higher."""
        return replace(self, arrays=[replace(array, base=array.base + pages * PAGE) for array in self.arrays])

    def reversed(self) -> Program:
        """Return the program with the arrays in the opposite order in memory, each on pages of its own."""
        bases = [array.base for array in self.arrays]
        pairs = zip(self.arrays, reversed(bases), strict=True)
        return replace(self, arrays=[replace(array, base=base) for array, base in pairs])

    def with_untouched(self) -> Program:
        """Return the program with one more array, below all others, that no kernel accesses."""
        first = min(array.base for array in self.arrays)
        classes = [np.zeros(64, np.uint8) for _ in self.arrays[0].classes]
        return replace(self, arrays=[*self.arrays, Array("untouched", first - PAGE, 64, classes)])

    def renamed(self) -> Program:
        """Return the program with other names of arrays and kernels."""
        arrays = [replace(array, name=f"other{i}") for i, array in enumerate(self.arrays)]
        return replace(self, arrays=arrays, names=[f"k{i}" for i in range(len(self.kernels))])


@cache
def random_program(seed: int, n_arrays: int = 3, entries: int = 2048, n_kernels: int = 3, blocks: int = 24) -> Program:
    """Generate kernels that stream or access randomly arrays whose entries change their sizes."""
    rng = np.random.default_rng(seed)
    arrays = []
    for number in range(n_arrays):
        classes = [np.repeat(rng.integers(0, 8, entries // 64), 64).astype(np.uint8)]
        for _ in range(n_kernels):
            changed = rng.random(entries) < 0.2
            classes.append(np.where(changed, rng.integers(0, 8, entries), classes[-1]).astype(np.uint8))
        arrays.append(Array(f"array{number}", BASE + number * PAGE, entries, classes))

    def access(block: int, warp: int, step: int) -> Access:
        kind = int(rng.choice([bt.OP_LOAD, bt.OP_LOAD, bt.OP_STORE]))
        array = int(rng.integers(n_arrays))
        if rng.random() < 0.7:
            line = (block * 32 + warp * 8 + step) % entries
            return kind, [(array, line, 15, 15 if kind == bt.OP_STORE else 0)]
        lines = rng.choice(entries, int(rng.integers(2, 9)), replace=False)
        return kind, [(array, int(line), int(rng.integers(1, 16)), 0) for line in lines]

    kernels = [
        [[[access(block, warp, step) for step in range(8)] for warp in range(4)] for block in range(blocks)]
        for _ in range(n_kernels)
    ]
    return Program(arrays, kernels)
