"""Addresses of a product's elements: the sum of a part by each of its two indices.

Elements that a convolution gathers lie in a window, in addition: the sum of both indices' rows, and that of their
columns, must be those of an element.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from buddysim.capture.torch.access.lane_addresses import fill_addresses

Numbers = NDArray[np.int64]
_LANES = 32


@dataclass(frozen=True)
class ProductAxis:
    """An axis of an operand.

    Attributes
    ----------
    extent : number of indices
    offset : function from indices to their offsets in bytes
    position : function from indices to rows and columns of the operand's window; None: it has no window
    """

    extent: int
    offset: Callable[[Numbers], ArrayLike]
    position: Callable[[Numbers], tuple[ArrayLike, ArrayLike]] | None = None

    @cached_property
    def parts(self) -> Numbers:
        """Offset, row and column of each index: int64 (extent, 3)."""
        numbers = np.arange(self.extent, dtype=np.int64)
        parts = np.zeros((self.extent, 3), np.int64)
        parts[:, 0] = self.offset(numbers)
        if self.position is not None:
            parts[:, 1], parts[:, 2] = self.position(numbers)
        return parts


@dataclass(frozen=True)
class Window:
    """The elements that an operand gathers.

    Attributes
    ----------
    size : rows and columns
    stride : of the positions from one element to the next, along both
    bytes : from one row to the next, and from one column to the next
    """

    size: tuple[int, int]
    stride: tuple[int, int]
    bytes: tuple[int, int]


@dataclass(frozen=True)
class ElementAddresses:
    """The addresses of an operand's or a result's elements.

    Attributes
    ----------
    address : of the element at 0, 0 without a window's part, bytes
    first, second : axes
    window : the elements that it gathers; None: it gathers none
    """

    address: int
    first: ProductAxis
    second: ProductAxis
    window: Window | None = None

    @property
    def turned(self) -> ElementAddresses:
        """The same elements, with the axes exchanged."""
        return ElementAddresses(self.address, self.second, self.first, self.window)

    @cached_property
    def bounds(self) -> Numbers:
        """Numbers of the window, as `fill_addresses` takes them."""
        window = self.window
        return np.array([] if window is None else [*window.size, *window.stride, *window.bytes], np.int64)


@dataclass(frozen=True)
class TileAddresses:
    """The addresses that the lanes of some thread blocks access: an element of each thread.

    Attributes
    ----------
    elements : of the operand
    threads : int64 (2, threads): each thread's indices, from its block's first ones
    blocks : int64 (4, blocks): first indices of each block along both axes, and the ends of its parts
    advance : by which the second index rises from one iteration of a loop to the next
    """

    elements: ElementAddresses
    threads: Numbers
    blocks: Numbers
    advance: int = 0

    def fill(self, out: Numbers) -> None:
        """Write the addresses to an array (blocks x warps, iterations, 32)."""
        one, blocks = self.elements, self.blocks
        fill_addresses(
            out, one.address, one.first.parts, one.second.parts, one.bounds, self.threads, blocks, self.advance
        )

    def at(self, iteration: int) -> Numbers:
        """Return the addresses in an iteration: int64 (blocks, warps, 32)."""
        out = np.empty((self.blocks.shape[1] * self.threads.shape[1] // _LANES, iteration + 1, _LANES), np.int64)
        self.fill(out)
        return out[:, iteration].reshape(self.blocks.shape[1], -1, _LANES)
