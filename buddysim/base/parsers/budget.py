"""What an input may cost: one budget, counted in total (docs/reference/untrusted-files.md)."""

from __future__ import annotations

from buddysim.base.errors import BuddysimError

MEMORY_BYTES = 1 << 30
"""Memory that reading a file may take, where nothing else is stated for its type."""
READING_S = 60
"""Processor time of reading a file of the size that a fuzzer makes."""
_GROWTH = 100
"""Bytes that a byte of a packed file may become, beyond `MEMORY_BYTES`."""


def max_unpacked_bytes(packed_bytes: int) -> int:
    """Return how many bytes a file may become when it is unpacked, all its parts together."""
    return max(_GROWTH * packed_bytes, MEMORY_BYTES)


class Budget:
    """Bytes that an input has become so far, against the most that it may become.

    Parameters
    ----------
    where : what errors begin with: the file
    most : bytes, at most
    """

    def __init__(self, where: str, most: int) -> None:
        self.where, self.most, self.spent = where, most, 0

    def spend(self, n_bytes: int) -> None:
        """Count further bytes; a BuddysimError where they are more than what is left."""
        self.reach(self.spent + n_bytes)

    def reach(self, n_bytes: int) -> None:
        """Count up to a total; a BuddysimError where it is more than the budget."""
        self.spent = max(self.spent, n_bytes)
        if self.spent > self.most:
            raise BuddysimError(f"{self.where}: becomes more than {self.most} bytes when it is unpacked")
