"""The part of an allocation that a memcpy or memset covers, in entries and sectors of the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from buddysim.compress import ENTRY_BYTES, SECTOR_BYTES
from buddysim.replay.address_space import AllocationRange


@dataclass(frozen=True)
class CopiedRange:
    """Bytes of an allocation.

    Attributes
    ----------
    allocation_range : of the allocation
    first_byte, end_byte : in the run's address space, in which entry n begins at 128 n
    reaches_end : whether they end where the allocation does: its last sector is covered then, however short
    """

    allocation_range: AllocationRange
    first_byte: int
    end_byte: int
    reaches_end: bool

    @classmethod
    def of(cls, allocation_range: AllocationRange, address: int, n_bytes: int) -> CopiedRange | None:
        """Return the bytes of a copy from an address of the trace on; None if the allocation has none of them."""
        allocation = allocation_range.allocation
        end = min(address + n_bytes, allocation.end)
        if address >= end:
            return None
        offset = allocation_range.first_entry * ENTRY_BYTES - allocation.base
        return cls(allocation_range, address + offset, end + offset, end == allocation.end)

    @property
    def bytes(self) -> int:
        """Number of bytes."""
        return self.end_byte - self.first_byte

    @property
    def entries(self) -> tuple[int, int]:
        """First entry of which at least a byte is covered, and the one behind the last."""
        return self.first_byte // ENTRY_BYTES, -(-self.end_byte // ENTRY_BYTES)

    @property
    def touched_sectors(self) -> tuple[int, int]:
        """First sector of which at least a byte is covered, and the one behind the last."""
        return self.first_byte // SECTOR_BYTES, -(-self.end_byte // SECTOR_BYTES)

    @property
    def whole_sectors(self) -> tuple[int, int]:
        """First sector that is fully covered, and the one behind the last."""
        return -(-self.first_byte // SECTOR_BYTES), (
            self.touched_sectors[1] if self.reaches_end else self.end_byte // SECTOR_BYTES
        )

    def part(self, offset: int, n_bytes: int) -> CopiedRange | None:
        """Return the part from an offset on, as far as it reaches; None if it is empty."""
        first, end = self.first_byte + offset, min(self.first_byte + offset + n_bytes, self.end_byte)
        return (
            CopiedRange(self.allocation_range, first, end, self.reaches_end and end == self.end_byte)
            if first < end
            else None
        )

    def portions(self, portion_bytes: int) -> Iterator[CopiedRange]:
        """Yield its parts, cut at multiples of a size."""
        first = self.first_byte
        while first < self.end_byte:
            end = min((first // portion_bytes + 1) * portion_bytes, self.end_byte)
            portion = self.part(first - self.first_byte, end - first)
            assert portion is not None
            yield portion
            first = end
