"""Size classes that a trace gives: those of its size maps, else computed from its contents."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from buddysim.buddy.known import PAGE_ENTRIES, KnownClasses, classes_of_block, runs
from buddysim.compress import DEFAULT, ENTRY_BYTES, STUDY_CLASSES, UNKNOWN_CLASS, entry_classes
from buddysim.compress.compressors import find_for_entries, joined, profile_options
from buddysim.trace import Contents, SizeMap, Trace

N_CLASSES = len(STUDY_CLASSES)
_CACHED_PARTS, _CACHED_BLOCKS = 64, 4


def put_classes(out: NDArray[np.uint8], classes: NDArray[np.uint8], shift: int) -> None:
    """Write a class into each byte, from bit `shift` on; lower bits stay."""
    out &= (1 << shift) - 1
    out |= classes << shift


class EntryValues:
    """The entry sizes that a trace's snapshots have, by allocation.

    Parameters
    ----------
    trace : the trace
    algorithm : the compressor, or several as ``bdi+fpc``, of which the smallest size is taken; size maps by other
        compressors are ignored

    Attributes
    ----------
    snapshots : indices of the snapshots that have any sizes, in the order of their points
    """

    def __init__(self, trace: Trace, algorithm: str = DEFAULT) -> None:
        for name in joined(algorithm):
            find_for_entries(name)
        self.trace, self.algorithm = trace, algorithm
        self._sources: dict[tuple[int, int], Contents | SizeMap] = {}
        self.parts = lru_cache(_CACHED_PARTS)(self._make_parts)
        self._block = lru_cache(_CACHED_BLOCKS)(self._make_block)
        for snapshot in trace.snapshots:
            for contents in snapshot.contents:
                if contents.n_pages:
                    self._sources[snapshot.index, contents.allocation] = contents
        for size_map in trace.size_maps:
            if size_map.compressor == algorithm:
                self._sources[size_map.snapshot, size_map.allocation] = size_map
        in_order = sorted(trace.snapshots, key=lambda s: (s.launch_index, s.index))
        with_values = {index for index, _ in self._sources}
        self.snapshots = [s.index for s in in_order if s.index in with_values]
        self._position = {s.index: position for position, s in enumerate(in_order)}
        self._of_allocation: dict[int, list[int]] = {}
        for index, allocation in sorted(self._sources, key=lambda pair: self._position[pair[0]]):
            self._of_allocation.setdefault(allocation, []).append(index)

    def snapshots_of(self, allocation: int) -> list[int]:
        """Return the snapshots that have sizes of an allocation, by launch index."""
        return self._of_allocation.get(allocation, [])

    def over_the_run(self, allocation: int) -> list[int]:
        """Return the snapshots of `of_allocation` taken over the run; without any, those around traced launches."""
        snapshots = self.snapshots_of(allocation)
        return [s for s in snapshots if not self.trace.snapshots[s].for_replay] or snapshots

    def nearest(self, snapshot: int, allocation: int) -> int | None:
        """Return the snapshot whose sizes an allocation takes: this one, else the next with sizes, else the last."""
        snapshots = self.snapshots_of(allocation)
        if not snapshots:
            return None
        position = self._position[snapshot]
        return next((s for s in snapshots if self._position[s] >= position), snapshots[-1])

    def is_sampled(self, snapshot: int, allocation: int) -> bool:
        """Return whether the sizes are computed from contents that have only some pages."""
        source = self._sources[snapshot, allocation]
        return isinstance(source, Contents) and not source.whole

    def is_computed(self, snapshot: int, allocation: int) -> bool:
        """Return whether the sizes are computed from contents, not read from a size map."""
        return isinstance(self._sources[snapshot, allocation], Contents)

    def _make_parts(self, snapshot: int, allocation: int) -> KnownClasses:
        """Return the classes of an allocation that is too large to be read completely, part by part."""
        entries = self.trace.allocations[allocation].entries
        block = partial(self._block, snapshot, allocation)
        return KnownClasses(self._sources[snapshot, allocation], entries, self._classes, block)

    def _make_block(self, snapshot: int, allocation: int, number: int) -> NDArray[np.uint8]:
        return classes_of_block(self._sources[snapshot, allocation], number, self._classes)

    def write(self, snapshot: int, allocation: int, out: NDArray[np.uint8], shift: int = 0) -> int:
        """Write the known classes of all entries of an allocation, 15 where unknown.

        Parameters
        ----------
        snapshot, allocation : their indices
        out : uint8, one per entry of the allocation
        shift : bit of the byte at which the class begins; lower bits stay

        Returns
        -------
        entries of the pages that were sampled together
        """
        source = self._sources[snapshot, allocation]
        if isinstance(source, SizeMap):
            for first, classes in source.blocks():
                put_classes(out[first : first + len(classes)], classes, shift)
            return PAGE_ENTRIES
        page_entries = source.page_bytes // ENTRY_BYTES
        if not source.whole:
            out &= (1 << shift) - 1
            out |= UNKNOWN_CLASS << shift
        for pages, classes in self._computed(source):
            if pages[-1] - pages[0] + 1 == len(pages):
                first = int(pages[0]) * page_entries
                put_classes(out[first : first + len(classes)], classes, shift)
            else:
                entries = pages.astype(np.int64)[:, np.newaxis] * page_entries + np.arange(page_entries)
                at = entries.reshape(-1)[: len(classes)]
                window = out[at]
                put_classes(window, classes, shift)
                out[at] = window
        return page_entries

    def known(self, snapshot: int, allocation: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield first entry and classes of the parts of an allocation in a snapshot, in order; 15 where unknown."""
        source = self._sources[snapshot, allocation]
        if isinstance(source, SizeMap):
            yield from source.blocks()
            return
        page_entries = source.page_bytes // ENTRY_BYTES
        for pages, classes in self._computed(source):
            for first, last in runs(pages):
                begin = int(np.searchsorted(pages, first)) * page_entries
                yield first * page_entries, classes[begin : begin + (last + 1 - first) * page_entries]

    def counts(self, snapshot: int, allocation: int) -> NDArray[np.int64]:
        """Return the entries of each class, without entries of unknown class."""
        source = self._sources[snapshot, allocation]
        blocks = source.blocks() if isinstance(source, SizeMap) else self._computed(source)
        counts = np.zeros(UNKNOWN_CLASS + 1, dtype=np.int64)
        for _, classes in blocks:
            counts += np.bincount(classes, minlength=len(counts))
        return counts[:N_CLASSES]

    @cached_property
    def _profiles(self) -> dict[str, dict[str, object]]:
        """Return the options of compressors that need a profile, computed from all contents."""
        options_by_name = {}
        for name in joined(self.algorithm):
            computed = (source for source in self._sources.values() if isinstance(source, Contents))
            blocks = (data for source in computed for _, data in source.blocks())
            options_by_name[name] = profile_options(find_for_entries(name), blocks)
        return options_by_name

    def _classes(self, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the classes of contents."""
        each = [entry_classes(data, name, **profile) for name, profile in self._profiles.items()]
        smallest: NDArray[np.uint8] = each[0] if len(each) == 1 else np.minimum.reduce(each)
        return smallest

    def _computed(self, contents: Contents) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint8]]]:
        for pages, data in contents.blocks():
            if len(pages):
                yield pages, self._classes(data)
