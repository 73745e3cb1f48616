"""Sectored lines, and caches of them with the least recently used replaced."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache


@dataclass
class RefCacheLine:
    """The sector masks of a line; `pending` sectors arrive at `ready`. The L1 has no dirty sectors.

    `size_class` is the one that the last writer gives the entry; `merges`, in the L1, counts accesses that wait for
    those pending.
    """

    valid: int = 0
    dirty: int = 0
    pending: int = 0
    ready: int = 0
    size_class: int | None = None
    merges: int = 0

    def come(self, sectors: int, at: int, seen_from: int) -> None:
        """Add sectors that arrive at a time; all pending sectors of the line arrive together."""
        if self.pending and self.ready > seen_from:
            self.pending |= sectors
            self.ready = max(self.ready, at)
        else:
            self.pending, self.ready = sectors, at
        self.valid |= sectors

    def merged(self, requested: int, t: int) -> int:
        """Return the valid sectors requested at `t` that are still pending."""
        return self.pending & self.valid & requested if self.ready > t else 0


class RefCache:
    """A cache of sectored lines, by entry, with LRU replacement.

    Parameters
    ----------
    ways : lines of a set
    set_of : the set of an entry
    """

    def __init__(self, ways: int, set_of: Callable[[int], object]) -> None:
        self.ways, self.set_of = ways, cache(set_of)  # hashed once: an entry stays in its set
        self.sets: dict[object, OrderedDict[int, RefCacheLine]] = {}

    def set_for(self, entry: int) -> OrderedDict[int, RefCacheLine]:
        """Return the lines of the entry's set, the least recently used first."""
        return self.sets.setdefault(self.set_of(entry), OrderedDict())

    def find(self, entry: int) -> RefCacheLine | None:
        """Return the entry's line, and make it the most recently used."""
        lines = self.set_for(entry)
        if entry in lines:
            lines.move_to_end(entry)
        return lines.get(entry)

    def peek(self, entry: int) -> RefCacheLine | None:
        """Return the entry's line without a change of the LRU order."""
        return self.set_for(entry).get(entry)

    def evict_if_full(self, entry: int) -> tuple[int, RefCacheLine] | None:
        """Remove and return the line that an entry's new line replaces; None if a way is empty."""
        lines = self.set_for(entry)
        return lines.popitem(last=False) if len(lines) == self.ways else None

    def add(self, entry: int) -> RefCacheLine:
        """Add a line as the most recently used; its set must have a free way."""
        return self.set_for(entry).setdefault(entry, RefCacheLine())

    def drop(self, entry: int) -> RefCacheLine | None:
        """Remove and return the entry's line."""
        return self.set_for(entry).pop(entry, None)

    def clear(self) -> None:
        """Remove all lines."""
        self.sets.clear()

    def all_lines(self) -> list[tuple[int, RefCacheLine]]:
        """Return every entry with its line."""
        return [(entry, line) for lines in self.sets.values() for entry, line in lines.items()]
