"""Addresses of the arrays of a program in Unified Memory."""

from __future__ import annotations

from buddysim.synthetic.workload import FIRST_BASE
from buddysim.trace import TraceWriter

BLOCK = 2 * 2**20
"""Size of the driver's VA blocks, each with one prefetch tree."""
TREE_PAGE = 64 * 2**10
"""Size of a leaf of the prefetch tree."""
OWN_BLOCK = 2**20
"""Arrays of at least this size, rounded up to leaves, begin a VA block."""
SHARED_ALIGNMENT = 512
"""Alignment of smaller arrays, which share VA blocks."""


class ManagedLayout:
    """Addresses of arrays as cudaMallocManaged assigns them: large arrays begin a VA block, smaller ones share blocks.

    The size of a large array and the alignment of small ones follow from the CPU faults of the logs (cpu_faults.py).

    Parameters
    ----------
    own_block, alignment : bytes; other values than the defaults are for comparison
    """

    def __init__(self, own_block: int = OWN_BLOCK, alignment: int = SHARED_ALIGNMENT) -> None:
        self.own_block, self.alignment, self._next = own_block, alignment, FIRST_BASE
        self._shared, self._shared_end = 0, 0

    def allocate(self, size: int) -> int:
        """Return the address of the next array."""
        if -(-size // TREE_PAGE) * TREE_PAGE >= self.own_block:
            base, self._next = self._next, self._next + -(-size // BLOCK) * BLOCK
            return base
        rounded = -(-size // self.alignment) * self.alignment
        if self._shared + rounded > self._shared_end:
            self._shared, self._next = self._next, self._next + -(-rounded // BLOCK) * BLOCK
            self._shared_end = self._next
        base, self._shared = self._shared, self._shared + rounded
        return base


class ManagedSpace:
    """The arrays of a program, recorded in its trace."""

    def __init__(self, writer: TraceWriter) -> None:
        self.writer, self._layout = writer, ManagedLayout()

    def array(self, name: str, size: int, written: int | None = None) -> int:
        """Allocate an array, and return its address.

        Parameters
        ----------
        name, size : name and bytes of the array
        written : bytes that the CPU initialises, from the first one; None: all
        """
        base = self._layout.allocate(size)
        self.writer.add_allocation(name, base, size)
        if written != 0:
            self.writer.memcpy("htod", base, size if written is None else written)
        return base
