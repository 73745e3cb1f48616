"""The reference model of `cache`: sets as ordered dicts, least recently used first."""

from __future__ import annotations

from collections import OrderedDict


def fold(x: int) -> int:
    """`cache.fold`: mixes the high bits of a line number into the low ones (32-bit arithmetic)."""
    x ^= x >> 15
    x = x * 0x2C1B3C6D & 0xFFFFFFFF
    x ^= x >> 12
    x = x * 0x297A2D39 & 0xFFFFFFFF
    return x ^ x >> 15


class RefLruTags:
    """One sectored set-associative cache with LRU replacement.

    Parameters
    ----------
    sets, ways : shape of the cache
    """

    def __init__(self, sets: int, ways: int) -> None:
        self.ways = ways
        self.sets: list[OrderedDict[int, int]] = [OrderedDict() for _ in range(sets)]

    def set_of(self, tag: int) -> OrderedDict[int, int]:
        """The set that may hold `tag`."""
        count = len(self.sets)
        if count & (count - 1) == 0:
            return self.sets[(tag ^ fold(tag >> (count.bit_length() - 1))) & (count - 1)]
        return self.sets[(tag % count + fold(tag // count) % count) % count]

    def access(self, tag: int, sectors: int) -> tuple[int, int]:
        """Touches sectors of a line; returns the mask of hits and the tag evicted, or -1."""
        lines, evicted = self.set_of(tag), -1
        if tag not in lines and len(lines) == self.ways:
            evicted, _ = lines.popitem(last=False)
        valid = lines.pop(tag, 0)
        lines[tag] = valid | sectors
        return valid & sectors, evicted
