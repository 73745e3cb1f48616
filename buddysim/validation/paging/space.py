"""Where the arrays of a program lie in Unified Memory."""

from __future__ import annotations

from buddysim.synthetic.workload import FIRST_BASE
from buddysim.trace import TraceWriter

BLOCK = 2 * 2**20
"""The driver's blocks of virtual memory, each under one prefetch tree."""
PIECE = 64 * 2**10
OWN_BLOCK = 2**20
"""Arrays of so many bytes, counted in whole pieces, begin a block."""
SHARED_ALIGNMENT = 512
"""Of smaller arrays, which share blocks."""


class ManagedLayout:
    """Addresses of arrays as cudaMallocManaged places them: large ones begin a block, smaller ones share blocks.

    What a large one is, and how closely small ones lie, is what the CPU page faults of the logs tell (cpu_faults.py).

    Parameters
    ----------
    own_block, alignment : bytes; others than these are for comparison
    """

    def __init__(self, own_block: int = OWN_BLOCK, alignment: int = SHARED_ALIGNMENT) -> None:
        self.own_block, self.alignment, self._next = own_block, alignment, FIRST_BASE
        self._shared, self._shared_end = 0, 0

    def place(self, size: int) -> int:
        """Address of the next array."""
        if -(-size // PIECE) * PIECE >= self.own_block:
            base, self._next = self._next, self._next + -(-size // BLOCK) * BLOCK
            return base
        rounded = -(-size // self.alignment) * self.alignment
        if self._shared + rounded > self._shared_end:
            self._shared, self._next = self._next, self._next + -(-rounded // BLOCK) * BLOCK
            self._shared_end = self._next
        base, self._shared = self._shared, self._shared + rounded
        return base


class ManagedSpace:
    """Arrays of a program, written into its trace."""

    def __init__(self, writer: TraceWriter) -> None:
        self.writer, self._placement = writer, ManagedLayout()

    def array(self, name: str, size: int, written: int | None = None) -> int:
        """A new array's address.

        Parameters
        ----------
        name, size : of the array
        written : bytes that the CPU initialises, from the array's beginning on; None: all
        """
        base = self._placement.place(size)
        self.writer.add_allocation(name, base, size)
        if written != 0:
            self.writer.memcpy("htod", base, size if written is None else written)
        return base
