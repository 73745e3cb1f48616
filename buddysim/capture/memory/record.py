"""The trace file of a capture: first as snapshots come, then again with those that stay, kernels and how it ended.

While the program runs, the file has all snapshots so far and no kernels; it can be read at any moment, should the
capture itself be killed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from buddysim.capture.memory.addresses import Places
from buddysim.capture.memory.kernels import Touched, write_interval
from buddysim.capture.memory.pages import PageSums, changed_pages, sum_pages
from buddysim.capture.memory.wire import Entry, Values
from buddysim.capture.sampling import PAGE_BYTES, sampled_pages
from buddysim.capture.thinning import equally_spaced
from buddysim.compress import UNKNOWN_CLASS, entry_classes
from buddysim.trace import Provenance, Trace, TraceWriter, open_trace

_ENTRY_BYTES = 128
_ENTRIES_PER_PAGE = PAGE_BYTES // _ENTRY_BYTES


@dataclass(frozen=True)
class Header:
    """An allocation, as it is in every snapshot in which it lives; `number` is the program's."""

    number: int
    name: str
    base: int
    bytes: int


@dataclass(frozen=True)
class Seen:
    """An allocation in one snapshot: `index` is its number in the file as it is now, which has its values."""

    header: Header
    index: int
    sums: PageSums


@dataclass
class Moment:
    """One snapshot that was taken.

    Parameters
    ----------
    position : of the run, in calls or nanoseconds of processor time
    label : the same for people
    in_file : its number in the file as it is now
    """

    position: int
    label: str
    in_file: int
    seen: list[Seen] = field(default_factory=list)


class _Live:
    """The allocations of the file that is being written, by the program's number."""

    def __init__(self, writer: TraceWriter) -> None:
        self._writer = writer
        self._indices: dict[int, int] = {}

    def become(self, headers: Iterable[Header]) -> dict[int, int]:
        """End those that are gone and begin the new ones; gives the file's number of each."""
        now = {one.number: one for one in headers}
        for number in self._indices.keys() - now.keys():
            self._writer.free_allocation(self._indices.pop(number))
        for number, one in now.items():
            if number not in self._indices:
                self._indices[number] = self._writer.add_allocation(one.name, one.base, one.bytes)
        return self._indices


class Record:
    """Writes the snapshots of one run.

    Parameters
    ----------
    path : the trace file
    provenance : what is known at the start
    wanted : snapshots that stay at the end; 0: all
    contents_bytes : keep about so much of the contents of an allocation in a snapshot
    seed : chooses the pages that are kept
    level : of zstd
    """

    def __init__(
        self, path: Path, provenance: Provenance, wanted: int, contents_bytes: int, seed: int, level: int
    ) -> None:
        self.path, self._provenance, self._wanted = path, provenance, wanted
        self._contents_bytes, self._seed, self._level = contents_bytes, seed, level
        self.moments: list[Moment] = []
        self.bytes_seen = self.unreadable_bytes = 0
        self._names: dict[int, str] = {}
        self._times_named: Counter[str] = Counter()
        self._begin()

    def _begin(self) -> None:
        self._writer = TraceWriter(self.path, self._provenance_so_far(), partial=True)
        self._places, self._live = Places(), _Live(self._writer)
        self._in_file = 0

    def _provenance_so_far(self) -> Provenance:
        ended = {"end": "the capture itself was interrupted; no kernels were derived"}
        return replace(self._provenance, assumptions=self._provenance.assumptions | ended)

    def forget(self) -> None:
        """Start again: the program replaced itself by another one."""
        self._writer.abort()
        self.moments, self._names, self._times_named = [], {}, Counter()
        self.bytes_seen = self.unreadable_bytes = 0
        self._begin()

    def _name(self, entry: Entry, call_site: str) -> str:
        """The call site; the second allocation from there says so."""
        if entry.id not in self._names:
            self._times_named[call_site] += 1
            times = self._times_named[call_site]
            self._names[entry.id] = call_site if times == 1 else f"{call_site} #{times}"
        return self._names[entry.id]

    def add(
        self,
        position: int,
        label: str,
        entries: Sequence[Entry],
        call_sites: dict[int, str],
        values: Iterable[Values],
    ) -> None:
        """A snapshot.

        Parameters
        ----------
        position, label : see `Moment`
        entries : its allocations
        call_sites : of those that are wanted, by their numbers
        values : of all of them, in their order; each is done with before the next is asked for
        """
        wanted = sorted((entry for entry in entries if entry.id in call_sites), key=lambda entry: entry.id)
        self._places.keep_only(call_sites)
        headers = {
            entry.id: Header(
                entry.id,
                self._name(entry, call_sites[entry.id]),
                self._places.of(entry.id, entry.base, entry.bytes),
                entry.bytes,
            )
            for entry in wanted
        }
        indices = self._live.become(headers.values())
        moment = Moment(position, label, self._in_file)
        snapshot = self._writer.add_snapshot(self._in_file + 1, label)
        self._in_file += 1
        for entry, seen in zip(entries, values, strict=True):
            if entry.id in headers:
                self._add_values(snapshot, indices[entry.id], entry, seen)
                sums = sum_pages(entry.bytes, seen.pages, seen.data)
                moment.seen.append(Seen(headers[entry.id], indices[entry.id], sums))
        self.moments.append(moment)
        if self._wanted and len(self.moments) >= 4 * self._wanted:
            self._choose(position, 2 * self._wanted)
            self._rewrite()

    def _add_values(self, snapshot: int, allocation: int, entry: Entry, seen: Values) -> None:
        self.bytes_seen += len(seen.data)
        self.unreadable_bytes += seen.unreadable
        found = entry_classes(seen.data)
        pages, data = seen.pages, seen.data
        if pages is None:
            classes = found
        else:
            entries = -(-entry.bytes // _ENTRY_BYTES)
            whole = np.full((-(-entries // _ENTRIES_PER_PAGE), _ENTRIES_PER_PAGE), UNKNOWN_CLASS, np.uint8)
            padded = np.full(len(pages) * _ENTRIES_PER_PAGE, UNKNOWN_CLASS, np.uint8)
            padded[: len(found)] = found
            whole[pages] = padded.reshape(-1, _ENTRIES_PER_PAGE)
            classes = whole.reshape(-1)[:entries]
        self._writer.add_size_map(snapshot, allocation, classes)
        if len(data) > self._contents_bytes:
            kept = sampled_pages(len(data), self._contents_bytes, self._seed)  # of those that were seen
            data = np.concatenate([data[start : start + PAGE_BYTES] for start in kept.astype(np.int64) * PAGE_BYTES])
            pages = kept if pages is None else pages[kept]
        self._writer.add_contents(snapshot, allocation, data, pages, PAGE_BYTES)

    def _choose(self, total: int, wanted: int) -> None:
        """Keep the snapshots that are nearest to equal distances over a run of length `total`."""
        stay = equally_spaced([moment.position for moment in self.moments], total, wanted)
        self.moments = [self.moments[index] for index in stay]

    def _rewrite(self) -> None:
        """The file as it would be if the snapshots that were given up had never been taken; and go on with it."""
        self._writer.close()
        rewritten = self.path.with_name(f"{self.path.name}.{os.getpid()}.thinned")
        try:
            with open_trace(self.path) as old:
                self._writer = TraceWriter(rewritten, self._provenance_so_far(), partial=True)
                self._live = self._copy(old, self._writer, kernels=False)
            rewritten.replace(self.path)
        finally:
            rewritten.unlink(missing_ok=True)
        for number, moment in enumerate(self.moments):
            moment.in_file = number
        self._in_file = len(self.moments)

    def finish(self, total: int, assumptions: dict[str, str]) -> None:
        """Write the file again with the snapshots that stay, the kernels between them, and how the program ended."""
        self._choose(total, self._wanted or len(self.moments))
        self._writer.close()
        provenance = replace(self._provenance, assumptions=self._provenance.assumptions | assumptions)
        rewritten = self.path.with_name(f"{self.path.name}.{os.getpid()}.final")
        try:
            with (
                open_trace(self.path) as old,
                TraceWriter(rewritten, provenance, compression_level=self._level) as writer,
            ):
                self._copy(old, writer, kernels=True)
            rewritten.replace(self.path)
        finally:
            rewritten.unlink(missing_ok=True)

    def _copy(self, old: Trace, writer: TraceWriter, *, kernels: bool) -> _Live:
        """The chosen snapshots, from the old file into a new one."""
        live = _Live(writer)
        maps = {(size_map.snapshot, size_map.allocation): size_map for size_map in old.size_maps}
        before: dict[int, PageSums] = {}
        for turn, moment in enumerate(self.moments):
            indices = live.become(one.header for one in sorted(moment.seen, key=lambda one: one.header.number))
            if kernels:
                write_interval(writer, f"interval {turn} (derived)", _touched(moment, before), turn)
            snapshot = writer.add_snapshot(turn + 1, moment.label)
            for place, one in enumerate(moment.seen):
                index = indices[one.header.number]
                contents = old.snapshots[moment.in_file].contents_of(one.index)
                assert contents is not None
                writer.add_size_map(snapshot, index, maps[moment.in_file, one.index].read())
                pages, data = contents.read()
                writer.add_contents(snapshot, index, data, pages, contents.page_bytes)
                moment.seen[place] = replace(one, index=index)
            before = {one.header.number: one.sums for one in moment.seen}
        return live


def _touched(moment: Moment, before: dict[int, PageSums]) -> list[Touched]:
    """What the interval that ends with a snapshot goes over, by address."""
    found = [
        Touched(one.header.base, one.header.bytes, changed_pages(before.get(one.header.number), one.sums))
        for one in moment.seen
    ]
    return sorted(found, key=lambda one: one.base)
