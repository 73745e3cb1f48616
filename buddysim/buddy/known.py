"""Size classes of a very large allocation, computed only for the parts that a run touches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from buddysim.buddy.entry_sizes import fill_unsampled
from buddysim.compress import ENTRY_BYTES, UNKNOWN_CLASS
from buddysim.trace import Contents, SizeMap
from buddysim.trace.format import PAGE_BYTES

PAGE_ENTRIES = PAGE_BYTES // ENTRY_BYTES


class KnownClasses:
    """The classes that a trace has of an allocation in one snapshot, part by part.

    Each part equals the same part of the complete classes, filled by `entry_sizes.fill_unsampled`.

    Parameters
    ----------
    source : contents or a size map
    entries : number of the allocation's entries
    classes : returns the classes of some contents
    block : returns the classes of one of the source's blocks (`classes_of_block`); requested repeatedly

    Attributes
    ----------
    filled : number of unknown entries, which take a neighbour's class; all entries where none is known
    """

    def __init__(
        self,
        source: Contents | SizeMap,
        entries: int,
        classes: Callable[[NDArray[np.uint8]], NDArray[np.uint8]],
        block: Callable[[int], NDArray[np.uint8]],
    ) -> None:
        self._source, self._entries, self._classes, self._block = source, entries, classes, block
        self._page_entries = source.page_bytes // ENTRY_BYTES if isinstance(source, Contents) else PAGE_ENTRIES
        step = self._page_entries if isinstance(source, Contents) else 1
        self._firsts = [first * step for first in source.firsts]  # of each block: the first entry
        self._sampled: NDArray[np.uint32] | None = None  # pages of which some entries are known; None: all are
        self._stored: NDArray[np.uint8] | None = None  # of sampled contents: the classes of these, page after page
        if isinstance(source, SizeMap):
            self.filled = self._look_through(source)
        elif source.whole:
            self.filled = 0
        else:
            self.filled = self._take_pages(source)

    def part(self, first: int, count: int) -> NDArray[np.uint8]:
        """Return the classes of `count` entries from `first` on."""
        page, end = first // self._page_entries, -(-(first + count) // self._page_entries)
        classes_of_pages = self._pages(page, end)
        return classes_of_pages[first - page * self._page_entries :][:count]

    def _look_through(self, source: SizeMap) -> int:
        """Record which pages of a size map have known entries; return the number of unknown entries."""
        unknown = 0
        pages: list[NDArray[np.int64] | range] = []
        for first, classes in source.blocks():
            known = classes != UNKNOWN_CLASS
            missing = len(classes) - int(np.count_nonzero(known))
            unknown += missing
            if missing:
                pages.append(_each_once((first + np.flatnonzero(known)) // PAGE_ENTRIES))
            else:
                pages.append(range(first // PAGE_ENTRIES, -(-(first + len(classes)) // PAGE_ENTRIES)))
        if unknown:
            self._sampled = _each_once(np.concatenate([np.asarray(part, np.int64) for part in pages])).astype(np.uint32)
        return unknown

    def _take_pages(self, source: Contents) -> int:
        """Store the classes of all sampled pages; return the number of entries outside of them."""
        numbers, classes = [], []
        for pages, data in source.blocks():
            if len(pages):
                numbers.append(pages)
                classes.append(self._classes(data))
        self._sampled, self._stored = np.concatenate(numbers), np.concatenate(classes)
        return self._entries - len(self._stored)

    def _pages(self, page: int, end: int) -> NDArray[np.uint8]:
        """Return the classes of some pages, unknown entries filled."""
        length = self._page_entries
        classes_of_pages = np.full(min(end * length, self._entries) - page * length, UNKNOWN_CLASS, dtype=np.uint8)
        for first, classes in self._known(page, end):
            skipped = max(page * length - first, 0)
            at = max(first - page * length, 0)
            part = classes[skipped:][: len(classes_of_pages) - at]
            classes_of_pages[at : at + len(part)] = part
        sampled = self._sampled
        if sampled is None:
            return classes_of_pages
        inside = sampled[np.searchsorted(sampled, page) : np.searchsorted(sampled, end)]
        for first, last in runs(inside):  # what is unknown in a page takes a class of the page
            fill_unsampled(classes_of_pages[(first - page) * length : (last + 1 - page) * length], length)
        missing = np.setdiff1d(np.arange(page, end, dtype=np.int64), inside)
        if len(missing):
            self._fill(classes_of_pages, page, missing)
        return classes_of_pages

    def _fill(self, classes_of_pages: NDArray[np.uint8], page: int, missing: NDArray[np.int64]) -> None:
        """Give pages without known entries the classes of the nearest ones; `found` begins with a page."""
        length = self._page_entries
        sources, at = np.unique(self._nearest(missing), return_inverse=True)
        end = page + -(-len(classes_of_pages) // length)
        taken = [
            classes_of_pages[(source - page) * length :][:length]
            if page <= source < end
            else self._pages(source, source + 1)
            for source in sources.tolist()
        ]
        rows = np.stack([np.resize(classes, length) for classes in taken])
        whole = np.resize(classes_of_pages, (end - page, length))
        whole[missing - page] = rows[at]
        classes_of_pages[:] = whole.reshape(-1)[: len(classes_of_pages)]

    def _nearest(self, pages: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each page the nearest one with known entries; of two, the lower."""
        assert self._sampled is not None
        after = np.searchsorted(self._sampled, pages)
        above = self._sampled[np.minimum(after, len(self._sampled) - 1)].astype(np.int64)
        below = self._sampled[np.maximum(after - 1, 0)].astype(np.int64)
        takes_above = (after == 0) | ((after < len(self._sampled)) & (above - pages < pages - below))
        return np.where(takes_above, above, below)

    def _known(self, page: int, end: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield first entry and classes of the blocks that have some of these pages."""
        length = self._page_entries
        if self._stored is not None:
            assert self._sampled is not None
            first, last = np.searchsorted(self._sampled, (page, end)).tolist()
            for at in range(first, last):
                yield int(self._sampled[at]) * length, self._stored[at * length : (at + 1) * length]
            return
        at = max(bisect_right(self._firsts, page * length) - 1, 0)
        while at < len(self._firsts) and self._firsts[at] < end * length:
            yield self._firsts[at], self._block(at)
            at += 1


def classes_of_block(
    source: Contents | SizeMap, number: int, classes: Callable[[NDArray[np.uint8]], NDArray[np.uint8]]
) -> NDArray[np.uint8]:
    """Return the classes of a block of a size map, or of complete contents."""
    first = source.firsts[number]
    if isinstance(source, SizeMap):
        end = source.firsts[number + 1] if number + 1 < len(source.firsts) else source.n_entries
        return next(source.blocks(first, end - first))[1]
    return classes(next(source.blocks(first, first + 1))[1])


def _each_once(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers in rising order, each once."""
    return numbers[np.concatenate(([True], numbers[1:] != numbers[:-1]))] if len(numbers) else numbers


def runs(numbers: NDArray[np.uint32]) -> Iterator[tuple[int, int]]:
    """Return first and last of each run of consecutive numbers."""
    if len(numbers):
        ends = np.flatnonzero(np.diff(numbers) != 1)
        firsts, lasts = np.concatenate(([0], ends + 1)), np.concatenate((ends, [len(numbers) - 1]))
        yield from zip(numbers[firsts].tolist(), numbers[lasts].tolist(), strict=True)
