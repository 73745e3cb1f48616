"""The trace file of a capture: written as snapshots arrive, then again with the selected ones and kernels.

While the program runs, the output's part has all snapshots so far and no kernels. `recover` reads it if the capture is
killed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from buddysim.base.output import Output
from buddysim.capture.memory.addresses import TraceAddresses
from buddysim.capture.memory.derived_kernels import StreamedRange, write_interval
from buddysim.capture.memory.pages import PageSums, changed_pages, sum_pages
from buddysim.capture.memory.wire import AllocationEntry, AllocationValues
from buddysim.capture.page_sampling import contents_budgets, resample_pages
from buddysim.capture.snapshot_selection import select_over_run
from buddysim.compress import ENTRY_BYTES, UNKNOWN_CLASS, entry_classes
from buddysim.trace import Provenance, Trace, TraceWriter, open_trace
from buddysim.trace.format import PAGE_BYTES

_ENTRIES_PER_PAGE = PAGE_BYTES // ENTRY_BYTES
_SNAPSHOTS_EXPECTED = 10  # limit of snapshots while their final number is unknown


@dataclass(frozen=True)
class Header:
    """An allocation, constant during its lifetime; `number` is the program's."""

    number: int
    name: str
    base: int
    bytes: int


@dataclass(frozen=True)
class RecordedAllocation:
    """An allocation in one snapshot; `index` is its number in the current file, which has its data values."""

    header: Header
    index: int
    sums: PageSums


@dataclass
class TakenSnapshot:
    """One recorded snapshot.

    Parameters
    ----------
    position : calls, or nanoseconds of processor time
    label : the position as text
    in_file : its number in the current file
    allocations : live allocations
    """

    position: int
    label: str
    in_file: int
    allocations: list[RecordedAllocation] = field(default_factory=list)


class _LiveInFile:
    """The allocations of the file that is being written, by the program's number."""

    def __init__(self, writer: TraceWriter) -> None:
        self._writer = writer
        self._indices: dict[int, int] = {}

    def update(self, headers: Iterable[Header]) -> dict[int, int]:
        """Free the allocations that ended and add the new ones; return the file's number of each."""
        now = {one.number: one for one in headers}
        for number in self._indices.keys() - now.keys():
            self._writer.free_allocation(self._indices.pop(number))
        for number, one in now.items():
            if number not in self._indices:
                self._indices[number] = self._writer.add_allocation(one.name, one.base, one.bytes)
        return self._indices


class SnapshotRecorder:
    """Write the snapshots of one run.

    Parameters
    ----------
    output : the trace file; its part is written
    provenance : provenance at the beginning; the end adds to it
    n_snapshots : snapshots of the final file; 0: all
    contents_bytes : approximate bytes of contents in the file, equal in every snapshot
    seed : seed of the choice of stored pages
    level : compression level of zstd
    compressor : compressor of the size maps
    """

    def __init__(
        self,
        output: Output,
        provenance: Provenance,
        n_snapshots: int,
        contents_bytes: int,
        seed: int,
        level: int,
        compressor: str,
    ) -> None:
        self.output, self._provenance, self._n_snapshots = output, provenance, n_snapshots
        self._contents_bytes, self._seed, self._level = contents_bytes, seed, level
        self._compressor = compressor
        self.snapshots: list[TakenSnapshot] = []
        self.bytes_seen = self.unreadable_bytes = 0
        self._names: dict[int, str] = {}
        self._times_named: Counter[str] = Counter()
        self._begin()

    def _begin(self) -> None:
        self._writer = TraceWriter(self.output, self._provenance_so_far())
        self._addresses, self._live = TraceAddresses(), _LiveInFile(self._writer)
        self._in_file = 0

    def _provenance_so_far(self) -> Provenance:
        ended = {"end": "the capture itself was interrupted; no kernels were derived"}
        return replace(self._provenance, assumptions=self._provenance.assumptions | ended)

    def restart(self) -> None:
        """Begin the file anew after the program replaced itself by another one."""
        self._writer.abort()
        self.snapshots, self._names, self._times_named = [], {}, Counter()
        self.bytes_seen = self.unreadable_bytes = 0
        self._begin()

    def _name(self, entry: AllocationEntry, call_site: str) -> str:
        """Return the call site, with a number from its second allocation on."""
        if entry.id not in self._names:
            self._times_named[call_site] += 1
            times = self._times_named[call_site]
            self._names[entry.id] = call_site if times == 1 else f"{call_site} #{times}"
        return self._names[entry.id]

    def add(
        self,
        position: int,
        label: str,
        entries: Sequence[AllocationEntry],
        call_sites: dict[int, str],
        values: Iterable[AllocationValues],
    ) -> None:
        """A snapshot.

        Parameters
        ----------
        position, label : see `TakenSnapshot`
        entries : its allocations
        call_sites : call sites of the allocations to capture, by number
        values : data values of all entries, in order; each is used before the next one is read
        """
        selected = sorted((entry for entry in entries if entry.id in call_sites), key=lambda entry: entry.id)
        self._addresses.keep_only(call_sites)
        headers = {
            entry.id: Header(
                entry.id,
                self._name(entry, call_sites[entry.id]),
                self._addresses.base_of(entry.id, entry.base, entry.bytes),
                entry.bytes,
            )
            for entry in selected
        }
        indices = self._live.update(headers.values())
        taken = TakenSnapshot(position, label, self._in_file)
        snapshot = self._writer.add_snapshot(self._in_file + 1, label)
        self._in_file += 1
        keep = self._contents_budget(headers.values())
        for entry, sent in zip(entries, values, strict=True):
            if entry.id in headers:
                self._add_values(snapshot, indices[entry.id], entry, sent, keep[entry.id])
                sums = sum_pages(entry.bytes, sent.pages, sent.data)
                taken.allocations.append(RecordedAllocation(headers[entry.id], indices[entry.id], sums))
        self.snapshots.append(taken)
        if self._n_snapshots and len(self.snapshots) >= 4 * self._n_snapshots:
            self._select(position, 2 * self._n_snapshots)
            self._rewrite()

    def _add_values(
        self, snapshot: int, allocation: int, entry: AllocationEntry, sent: AllocationValues, keep: int
    ) -> None:
        self.bytes_seen += len(sent.data)
        self.unreadable_bytes += sent.unreadable
        classes_sent = entry_classes(sent.data, self._compressor)
        pages = sent.pages
        if pages is None:
            classes = classes_sent
        else:
            entries = -(-entry.bytes // ENTRY_BYTES)
            whole = np.full((-(-entries // _ENTRIES_PER_PAGE), _ENTRIES_PER_PAGE), UNKNOWN_CLASS, np.uint8)
            padded = np.full(len(pages) * _ENTRIES_PER_PAGE, UNKNOWN_CLASS, np.uint8)
            padded[: len(classes_sent)] = classes_sent
            whole[pages] = padded.reshape(-1, _ENTRIES_PER_PAGE)
            classes = whole.reshape(-1)[:entries]
        self._writer.add_size_map(snapshot, allocation, classes, self._compressor)
        pages, data = resample_pages(pages, sent.data, keep, self._seed)
        if len(data):
            self._writer.add_contents(snapshot, allocation, data, pages, PAGE_BYTES)

    def _contents_budget(self, headers: Iterable[Header]) -> dict[int, int]:
        """Return the bytes to store of each allocation of a snapshot, by number."""
        ordered = sorted(headers, key=lambda one: one.number)
        snapshot_bytes = self._contents_bytes // (self._n_snapshots or max(len(self.snapshots), _SNAPSHOTS_EXPECTED))
        budgets = contents_budgets([one.bytes for one in ordered], snapshot_bytes)
        return {one.number: size for one, size in zip(ordered, budgets, strict=True)}

    def _select(self, total: int, n_snapshots: int) -> None:
        """Select the snapshots nearest to equal distances over a run of length `total`."""
        stay = select_over_run([taken.position for taken in self.snapshots], total, n_snapshots)
        self.snapshots = [self.snapshots[index] for index in stay]

    def _rewrite(self) -> None:
        """Write the file again without the dropped snapshots, and continue with it."""
        self._writer.close()
        with open_trace(self.output.part, incomplete=True) as old, Output(self.output.part) as thinned:
            self._writer = TraceWriter(thinned, self._provenance_so_far(), flush_each=True)
            self._live = self._copy(old, self._writer, kernels=False)
        for number, taken in enumerate(self.snapshots):
            taken.in_file = number
        self._in_file = len(self.snapshots)

    def finish(self, total: int, assumptions: dict[str, str]) -> None:
        """Write the part again with the selected snapshots, the kernels between them, and how the program ended."""
        self._select(total, self._n_snapshots or len(self.snapshots))
        self._writer.close()
        provenance = replace(self._provenance, assumptions=self._provenance.assumptions | assumptions)
        with (
            open_trace(self.output.part, incomplete=True) as old,
            Output(self.output.part) as final,
            TraceWriter(final, provenance, compression_level=self._level) as writer,
        ):
            self._copy(old, writer, kernels=True)

    @property
    def max_snapshot_bytes(self) -> int:
        """Return the bytes of the largest snapshot's allocations."""
        return max((sum(one.header.bytes for one in taken.allocations) for taken in self.snapshots), default=0)

    def abort(self) -> None:
        """Abort; the bytes written so far stay in the part."""
        self._writer.abort()

    def _copy(self, old: Trace, writer: TraceWriter, *, kernels: bool) -> _LiveInFile:
        """Copy the selected snapshots from the old file into a new one."""
        live = _LiveInFile(writer)
        maps = {(size_map.snapshot, size_map.allocation): size_map for size_map in old.size_maps}
        before: dict[int, PageSums] = {}
        for number, taken in enumerate(self.snapshots):
            indices = live.update(one.header for one in sorted(taken.allocations, key=lambda one: one.header.number))
            if kernels:
                write_interval(writer, f"interval {number} (derived)", _footprints(taken, before), number)
            snapshot = writer.add_snapshot(number + 1, taken.label)
            keep = self._contents_budget([one.header for one in taken.allocations])
            for position, one in enumerate(taken.allocations):
                index = indices[one.header.number]
                contents = old.snapshots[taken.in_file].contents_of(one.index)
                writer.add_size_map(snapshot, index, maps[taken.in_file, one.index].read(), self._compressor)
                if contents is not None:
                    pages, data = resample_pages(*contents.read(), keep[one.header.number], self._seed)
                    if len(data):
                        writer.add_contents(snapshot, index, data, pages, contents.page_bytes)
                taken.allocations[position] = replace(one, index=index)
            before = {one.header.number: one.sums for one in taken.allocations}
        return live


def _footprints(snapshot: TakenSnapshot, before: dict[int, PageSums]) -> list[StreamedRange]:
    """Return the ranges that the kernel of the interval before a snapshot reads, by address."""
    ranges = [
        StreamedRange(one.header.base, one.header.bytes, changed_pages(before.get(one.header.number), one.sums))
        for one in snapshot.allocations
    ]
    return sorted(ranges, key=lambda one: one.base)
