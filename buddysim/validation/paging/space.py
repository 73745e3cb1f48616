"""Where the arrays of a program lie in Unified Memory."""

from __future__ import annotations

from buddysim.synthetic.workload import FIRST_BASE
from buddysim.trace import TraceWriter

BLOCK = 2 * 2**20
"""The driver's blocks of virtual memory, each under one prefetch tree."""
PIECE = 64 * 2**10


class Space:
    """Arrays as cudaMallocManaged places them: those of a block and more begin a block, smaller ones share blocks.

    Assumed: that smaller ones share. That their sizes are rounded up to pieces of 64 KiB is what the logs' sums show.
    """

    def __init__(self, writer: TraceWriter) -> None:
        self.writer, self._next = writer, FIRST_BASE
        self._shared, self._shared_end = 0, 0

    def array(self, name: str, size: int, written: int | None = None) -> int:
        """A new array's address.

        Parameters
        ----------
        name, size : of the array
        written : bytes that the CPU initialises, from the array's beginning on; None: all
        """
        rounded = -(-size // PIECE) * PIECE
        if rounded >= BLOCK:
            base, self._next = self._next, self._next + -(-rounded // BLOCK) * BLOCK
        else:
            if self._shared + rounded > self._shared_end:
                self._shared, self._next = self._next, self._next + BLOCK
                self._shared_end = self._next
            base, self._shared = self._shared, self._shared + rounded
        self.writer.add_allocation(name, base, size)
        if written != 0:
            self.writer.memcpy("htod", base, size if written is None else written)
        return base
