"""Sectored lines, and caches of them with the least recently used replaced."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class RefCacheLine:
    """Masks of sectors; those that are `pending` are there at `ready`. The L1 has none that are dirty or partial.

    `size_class` is the one that the last writer gives the entry; `merges`, in the L1, counts accesses that wait for
    those pending.
    """

    valid: int = 0
    dirty: int = 0
    partial: int = 0
    pending: int = 0
    ready: int = 0
    size_class: int | None = None
    merges: int = 0

    def come(self, sectors: int, at: int, seen_from: int) -> None:
        """Sectors that weren't valid come at a time; one time for all pending sectors."""
        if self.pending and self.ready > seen_from:
            self.pending |= sectors
            self.ready = max(self.ready, at)
        else:
            self.pending, self.ready = sectors, at
        self.valid |= sectors
        self.partial &= ~sectors

    def merged(self, requested: int, t: int) -> int:
        """Which of the valid sectors requested at `t` are still pending."""
        return self.pending & self.valid & requested if self.ready > t else 0


class RefCache:
    """Lines by their entry.

    Parameters
    ----------
    ways : lines of a set
    set_of : the set of an entry
    """

    def __init__(self, ways: int, set_of: Callable[[int], object]) -> None:
        self.ways, self.set_of = ways, set_of
        self.sets: dict[object, OrderedDict[int, RefCacheLine]] = {}

    def set_for(self, entry: int) -> OrderedDict[int, RefCacheLine]:
        """The set's lines, the least recently used first."""
        return self.sets.setdefault(self.set_of(entry), OrderedDict())

    def find(self, entry: int) -> RefCacheLine | None:
        """The entry's line, which becomes the most recently used."""
        lines = self.set_for(entry)
        if entry in lines:
            lines.move_to_end(entry)
        return lines.get(entry)

    def peek(self, entry: int) -> RefCacheLine | None:
        """The entry's line."""
        return self.set_for(entry).get(entry)

    def evict_if_full(self, entry: int) -> tuple[int, RefCacheLine] | None:
        """Takes out the line that an entry's new line replaces; None where a way is empty."""
        lines = self.set_for(entry)
        return lines.popitem(last=False) if len(lines) == self.ways else None

    def add(self, entry: int) -> RefCacheLine:
        """A new line, the most recently used; its set must have a free way."""
        return self.set_for(entry).setdefault(entry, RefCacheLine())

    def drop(self, entry: int) -> RefCacheLine | None:
        """Takes the entry's line out."""
        return self.set_for(entry).pop(entry, None)

    def clear(self) -> None:
        """All lines leave."""
        self.sets.clear()

    def all_lines(self) -> list[tuple[int, RefCacheLine]]:
        """Every line, with its entry."""
        return [(entry, line) for lines in self.sets.values() for entry, line in lines.items()]
