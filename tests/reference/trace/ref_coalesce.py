"""Reference model of `coalesce.pyx`: byte by byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from buddysim.compress import SECTOR_BYTES
from buddysim.trace.format import LINE_BYTES

WORD_BYTES = 4
WORD_BANKS = 32
MAX_CONFLICT_CYCLES = 32
LANES = 32


def coalesce_op(addresses: Sequence[int], bytes_per_lane: int, is_store: bool) -> list[int]:
    """Line words of one warp memory operation, in the order in which its lanes first touch the lines.

    Parameters
    ----------
    addresses : byte address of each active lane, ascending lane number
    bytes_per_lane : bytes that each lane moves
    is_store : whether the lines mark the sectors that are written whole
    """
    touched: dict[int, set[int]] = {}
    for address in addresses:
        for byte in range(address, address + bytes_per_lane):
            touched.setdefault(byte // LINE_BYTES, set()).add(byte % LINE_BYTES)
    words = []
    for number, offsets in touched.items():
        sector_mask = whole_mask = 0
        for sector in range(LINE_BYTES // SECTOR_BYTES):
            covered = offsets.intersection(range(sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES))
            sector_mask |= bool(covered) << sector
            whole_mask |= (is_store and len(covered) == SECTOR_BYTES) << sector
        words.append(number << 8 | whole_mask << 4 | sector_mask)
    return words


def atomic_conflicts(addresses: Sequence[int], width: int) -> int:
    """Return the conflicts of an atomic: summed over sectors, the lanes beyond the first at the busiest word."""
    words = Counter((address // SECTOR_BYTES, address // width) for address in addresses)
    busiest = Counter[int]()
    for (sector, _), lanes in words.items():
        busiest[sector] = max(busiest[sector], lanes)
    return sum(busiest.values()) - len(busiest)


def bank_words(addresses: Sequence[int], bytes_per_lane: int, lines: Sequence[int]) -> int:
    """Return the cycles of the banks beyond a delivery of the sectors without conflicts, modulo 32."""
    together = LANES
    if not lines:
        return 0
    while together > 1 and together * bytes_per_lane > WORD_BANKS * WORD_BYTES:
        together //= 2
    cycles = 0
    for first in range(0, len(addresses), together):
        banks: dict[int, set[int]] = {}
        for address in addresses[first : first + together]:
            for byte in range(address, address + bytes_per_lane):
                banks.setdefault(byte // WORD_BYTES % WORD_BANKS, set()).add(byte // WORD_BYTES)
        cycles += max(len(words) for words in banks.values())
    sectors = sum((line & 15).bit_count() for line in lines)
    whole = -(-sectors * SECTOR_BYTES // (WORD_BANKS * WORD_BYTES))
    return (min(cycles, MAX_CONFLICT_CYCLES) - min(whole, MAX_CONFLICT_CYCLES)) % MAX_CONFLICT_CYCLES
