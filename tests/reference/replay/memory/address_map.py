"""Hashes of addresses: sets, slices, channels, banks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from buddysim.machine import Machine
from tests.reference.replay.numbers import RefNumbers

WORD = 2**32


@lru_cache(maxsize=1 << 16)
def fold(x: int) -> int:
    """Mix the bits of a 32-bit number."""
    x = x % WORD
    x ^= x >> 15
    x = x * 0x2C1B3C6D % WORD
    x ^= x >> 12
    x = x * 0x297A2D39 % WORD
    return x ^ x >> 15


def hash_index(x: int, n: int) -> int:
    """Return an index below `n` for `x`: a bijection of each aligned group of `n`."""
    if n & (n - 1) == 0:
        return (x ^ fold(x // n)) & (n - 1)
    return (x % n + fold(x // n) % n) % n


#: Coefficients of irreducible polynomials, by two to the power of their degrees: bit i is that of x^i.
POLYNOMIALS = {1: 0b1, 2: 0b11, 4: 0b111, 8: 0b1011, 16: 0b10011, 32: 0b100101, 64: 0b1000011}


@lru_cache(maxsize=1 << 16)
def remainder(group: int, slices: int) -> int:
    """Return the remainder of `group` x^log2(slices) by the polynomial of that degree, over GF(2)."""
    rest, divisor = group * slices, POLYNOMIALS[slices]
    for bit in reversed(range(slices.bit_length() - 1, 40)):
        if rest >> bit & 1:
            rest ^= divisor << (bit - slices.bit_length() + 1)
    return rest


@dataclass(frozen=True)
class RefLocation:
    """The location of the bursts of an entry or metadata line in device memory."""

    channel: int
    bank: int
    row: int


class RefAddressMap:
    """The slices, sets and locations of a machine's entries.

    Parameters
    ----------
    numbers : of the machine
    n_entries : entries of the run's address space
    """

    def __init__(self, numbers: RefNumbers, n_entries: int) -> None:
        self.numbers, self.n_entries = numbers, n_entries
        self.machine: Machine = numbers.machine
        self.neighbours = numbers.machine.l2.interleave_granularity // 128
        self.metadata_line = numbers.machine.metadata_cache.line
        self.slice_of = cache(self._slice_of)  # hashed once each: every access asks for it

    def l1_set(self, entry: int) -> int:
        return hash_index(entry, self.numbers.l1_sets)

    def _slice_of(self, entry: int) -> int:
        unit, slices = entry // self.neighbours, self.machine.l2.slices
        if self.machine.l2.slice_hash == "xor_fold":
            return hash_index(unit, slices)
        of_channel = max(1, slices // self.machine.dram.channels)
        channels = slices // of_channel
        return (unit % channels * of_channel + unit // channels % of_channel) ^ remainder(unit // slices, slices)

    def in_slice(self, entry: int) -> int:
        """Return the number of an entry among those of its slice."""
        return entry // self.neighbours // self.machine.l2.slices * self.neighbours + entry % self.neighbours

    def l2_set(self, entry: int) -> int:
        return hash_index(self.in_slice(entry), self.numbers.l2_sets)

    def location(self, entry: int) -> RefLocation:
        """Return the location of an entry's bursts."""
        slices, dram = self.machine.l2.slices, self.machine.dram
        if slices % dram.channels == 0:
            slices_per_channel, pseudo_per_slice = slices // dram.channels, dram.pseudo_channels
        else:
            slices_per_channel, pseudo_per_slice = 1, dram.pseudo_channels * dram.channels // slices
        local = self.in_slice(entry)
        channel = self.slice_of(entry) // slices_per_channel * pseudo_per_slice
        channel += (local ^ local >> 3 ^ local >> 7) % pseudo_per_slice
        return RefLocation(channel, *self._bank_and_row(entry))

    def _bank_and_row(self, entry: int) -> tuple[int, int]:
        dram, pseudo_channels = self.machine.dram, self.numbers.pseudo_channels
        row_stripe = entry // max(1, dram.row_bytes * pseudo_channels * dram.bank_groups // 128)
        in_groups = dram.banks // dram.bank_groups
        row = row_stripe // in_groups
        group = entry // self.neighbours // pseudo_channels % dram.bank_groups
        in_group = (row_stripe ^ fold(row)) % in_groups
        return group + in_group * dram.bank_groups, row

    def metadata_location(self, line: int) -> RefLocation:
        """Return the location of a metadata line's bursts."""
        entry = self.n_entries + line * (self.metadata_line // 32) // 4
        return RefLocation(hash_index(line, self.numbers.pseudo_channels), *self._bank_and_row(entry))
