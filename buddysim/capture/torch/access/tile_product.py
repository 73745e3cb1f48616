"""The kernel of matrix products and convolutions: tiles of the result, and a loop over k with double-buffered shared
memory for both operands.

It models SGEMM kernels of cuBLAS and implicit-GEMM kernels of cuDNN on Maxwell and later without tensor cores (Lavin's
maxas; CUTLASS's SIMT kernels). A thread has 8 x 8 results, so a tile of 128 x 128 has 256 threads. Each iteration of
the loop fetches 8 columns of one operand's tile and 8 rows of the other's for the next iteration, behind one barrier.
Thread blocks take tiles in order, along m first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from buddysim.capture.torch.access.launch import (
    LANES,
    Access,
    AccessLoop,
    Addresses,
    ModelledKernel,
    add_atomically,
    barrier,
    load,
    store,
    threads,
)
from buddysim.capture.torch.access.tile_addresses import ElementAddresses, TileAddresses

DEPTH: Final = 8  # columns and rows that an iteration fetches
_RESULTS: Final = 64  # of a thread
_TILES: Final = ((128, 128), (128, 64), (64, 128), (64, 64), (128, 32), (32, 128), (64, 32), (32, 64), (32, 32))
_BLOCKS: Final = 40  # the largest tile with so many thread blocks is used
_ELEMENT: Final = 4
_MIN_ITERATIONS: Final = 16  # least iterations of a part of k


@dataclass(frozen=True)
class MatmulOperand:
    """An operand of a product.

    Attributes
    ----------
    elements : addresses of its elements of 4 B, by indices along m or n, and along k
    along : direction in which neighbouring threads fetch: ``"k"`` or along the tile
    vector : elements that a thread fetches at once along it, 1 or 4; they are contiguous
    """

    elements: ElementAddresses
    along: Literal["k", "tile"]
    vector: int = 1


@dataclass(frozen=True)
class MatmulResult:
    """The result of a product.

    Attributes
    ----------
    elements : addresses of its elements, by row and column
    vector : elements that a thread writes at once along a row
    read_too : whether the product is added to the old value
    bias : addresses of a bias for each element; None: no bias
    """

    elements: ElementAddresses
    vector: int = 1
    read_too: bool = False
    bias: ElementAddresses | None = None


@dataclass(frozen=True)
class TiledMatmul:
    """A product: the sum over k of left[m, k] x right[k, n]."""

    name: str
    m: int
    n: int
    k: int
    left: MatmulOperand
    right: MatmulOperand
    result: MatmulResult
    divide_k: bool = False

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a tile."""
        fitting = [(m, n) for m, n in _TILES if m <= 2 * self.m and n <= 2 * self.n] or [_TILES[-1]]
        for m, n in fitting:
            if -(-self.m // m) * -(-self.n // n) >= _BLOCKS:
                return m, n
        return fitting[0] if self.divide_k else fitting[-1]

    @property
    def parts(self) -> int:
        """Number of parts of k; each has its own thread blocks, which add their results atomically."""
        rows, columns = self._tiles
        max_parts = max(1, self.k // (DEPTH * _MIN_ITERATIONS))
        return min(max_parts, -(-_BLOCKS // (rows * columns))) if self.divide_k else 1

    @property
    def _tiles(self) -> tuple[int, int]:
        rows, columns = self.tile
        return -(-self.m // rows), -(-self.n // columns)

    def launch(self) -> ModelledKernel:
        """Return the kernel of the product."""
        rows, columns = self.tile
        warps = max(1, rows * columns // _RESULTS // LANES)
        iterations = -(-self.k // (DEPTH * self.parts))
        each = DEPTH * (rows // self.left.vector + columns // self.right.vector) // (LANES * warps) + 1
        n_rows, n_columns = self._tiles
        return ModelledKernel(
            f"{self.name} {rows}x{columns}x{DEPTH}",
            n_rows * n_columns * self.parts,
            warps,
            iterations * each + _RESULTS,
            self._program,
            registers=128,
            shared_bytes=2 * _ELEMENT * DEPTH * (rows + columns),
        )

    def _program(self, blocks: Addresses) -> Iterator[Access | AccessLoop]:
        rows, columns = self.tile
        n_rows, n_columns = self._tiles
        part, tile = np.divmod(blocks.reshape(-1), n_rows * n_columns)
        first_n, first_m = np.divmod(tile, n_rows)
        first_m, first_n = first_m * rows, first_n * columns
        warps = max(1, rows * columns // _RESULTS // LANES)
        iterations = -(-self.k // (DEPTH * self.parts))
        first_k = part * iterations * DEPTH
        end_k = np.minimum(first_k + iterations * DEPTH, self.k)
        work = rows * columns * DEPTH // (LANES * warps)  # multiply-adds of a thread per iteration
        fetches = [
            load(TileAddresses(factor.elements, of_threads, ranges, DEPTH), _ELEMENT * factor.vector, 0, work or 1)
            for factor, first, size, end in (
                (self.left, first_m, rows, self.m),
                (self.right, first_n, columns, self.n),
            )
            for ranges in [np.stack([first, first_k, np.full_like(first, end), end_k])]
            for of_threads in _tile_fetches(factor, size, warps)
        ]
        # Two buffers: computes the last iteration's tile while this one's is fetched.
        fetches[0] = replace(fetches[0], gap_instructions=work)
        yield AccessLoop((*fetches, barrier()), iterations, first_gap=0)
        yield from self._results(first_m, first_n, warps)

    def _results(self, first_m: Addresses, first_n: Addresses, warps: int) -> Iterator[Access]:
        rows, columns = self.tile
        vector = self.result.vector
        ranges = np.stack([first_m, first_n, np.full_like(first_m, self.m), np.full_like(first_n, self.n)])
        for slot in range(rows * columns // (LANES * warps * vector)):
            number = (slot * LANES * warps + threads(warps).reshape(-1)) * vector
            of_threads = np.stack(np.divmod(number, columns))
            addresses = TileAddresses(self.result.elements, of_threads, ranges)
            if self.parts > 1:
                yield add_atomically(addresses)
                continue
            if self.result.bias is not None:
                yield load(TileAddresses(self.result.bias, of_threads, ranges), _ELEMENT * vector)
            if self.result.read_too:
                yield load(addresses, _ELEMENT * vector)
            yield store(addresses, _ELEMENT * vector)


def _tile_fetches(factor: MatmulOperand, size: int, warps: int) -> Iterator[Addresses]:
    """Yield the indices of each thread's first element along the tile and along k, for each fetch of an iteration."""
    each = LANES * warps * factor.vector  # divides the tile
    for slot in range(size * DEPTH // each):
        number = slot * each + threads(warps).reshape(-1) * factor.vector
        if factor.along == "k":
            yield np.stack(np.divmod(number, DEPTH))
        else:
            yield np.stack(np.divmod(number, size)[::-1])
