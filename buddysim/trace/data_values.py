"""Snapshots of memory contents and size maps, read block by block in bounded memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from buddysim.base.sections.section_format import SECTION
from buddysim.compress import ENTRY_BYTES, UNKNOWN_CLASS
from buddysim.trace import format as fmt
from buddysim.trace.model import Allocation
from buddysim.trace.sections import TraceSections


@dataclass
class Contents:
    """Bytes of one allocation in one snapshot."""

    snapshot: int
    allocation: int
    page_bytes: int
    whole: bool
    n_pages: int  # stored
    allocation_bytes: int
    rows: list[int] = field(repr=False)
    firsts: list[int] = field(repr=False)  # of each row: the pages stored before it
    file: TraceSections = field(repr=False)

    @property
    def allocation_pages(self) -> int:
        return -(-self.allocation_bytes // self.page_bytes)

    @property
    def sampled_fraction(self) -> float:
        """Fraction of the allocation's pages whose bytes the file has, 0 to 1."""
        return self.n_pages / self.allocation_pages

    @property
    def pages(self) -> npt.NDArray[np.uint32] | None:
        """Numbers of the sampled pages; None if the file has the whole allocation."""
        if self.whole:
            return None
        parts = [numbers for numbers, _ in self.blocks()]
        return np.concatenate(parts) if parts else np.empty(0, np.uint32)

    def blocks(
        self, first_page: int = 0, end_page: int | None = None
    ) -> Iterator[tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]]:
        """(page numbers, their bytes), about 1 MiB at a time; only the allocation's last page can be short.

        Parameters
        ----------
        first_page, end_page : only the blocks that have some of these, counted among the stored pages
        """
        where = f"contents of allocation {self.allocation} in snapshot {self.snapshot}"
        last_page = -1
        begin = max(bisect_right(self.firsts, first_page) - 1, 0)
        for row in self.rows[begin : len(self.rows) if end_page is None else bisect_left(self.firsts, end_page)]:
            offset = int(self.file.index[row]["offset"])
            payload = self.file.row_payload(row, where)
            _, _, _, _, _, first, count, _ = fmt.CONTENTS_HEAD.unpack_from(payload)
            start = fmt.CONTENTS_HEAD.size
            if self.whole:
                numbers = np.arange(first, first + count, dtype=np.uint32)
            else:
                if len(payload) < start + 4 * count:
                    self.file.fail(where, offset, f"{len(payload)} bytes, too few for {count} page numbers")
                numbers = np.frombuffer(payload, "<u4", count, start)
                start += 4 * count
                ascending = np.concatenate(([last_page], numbers.astype(np.int64)))
                if np.any(ascending[1:] <= ascending[:-1]) or ascending[-1] >= self.allocation_pages:
                    self.file.fail(where, offset, f"page numbers do not ascend within 0 to {self.allocation_pages - 1}")
            expected = count * self.page_bytes
            if count:
                last_page = int(numbers[-1])
                if last_page == self.allocation_pages - 1:
                    expected -= self.allocation_pages * self.page_bytes - self.allocation_bytes
            data = self.file.decompress(memoryview(payload)[start:], expected, where, offset)
            yield numbers, np.frombuffer(data, np.uint8)

    def read(self) -> tuple[npt.NDArray[np.uint32] | None, npt.NDArray[np.uint8]]:
        """Page numbers (None if whole) and their bytes, one page after the other."""
        numbers, data = [np.empty(0, np.uint32)], [np.empty(0, np.uint8)]
        for some_numbers, some_data in self.blocks():
            numbers.append(some_numbers)
            data.append(some_data)
        return None if self.whole else np.concatenate(numbers), np.concatenate(data)


@dataclass
class Snapshot:
    """Contents and sizes of memory after `launch_index` launches.

    Attributes
    ----------
    for_replay : whether it was taken next to a traced launch, in addition to the snapshots at equal distances
    """

    index: int
    launch_index: int
    label: str
    contents: list[Contents] = field(default_factory=list)

    @property
    def for_replay(self) -> bool:
        return self.label.startswith(fmt.REPLAY_LABEL)

    def contents_of(self, allocation: int) -> Contents | None:
        return next((c for c in self.contents if c.allocation == allocation), None)

    def read(self, allocation: int) -> tuple[npt.NDArray[np.uint32] | None, npt.NDArray[np.uint8]]:
        """Page numbers (None if whole) and bytes of an allocation; KeyError if the snapshot has none."""
        contents = self.contents_of(allocation)
        if contents is None:
            raise KeyError(f"snapshot {self.index} has no contents of allocation {allocation}")
        return contents.read()


@dataclass
class SizeMap:
    """Size class of every entry of an allocation in a snapshot, by one compressor."""

    snapshot: int
    allocation: int
    compressor: str
    n_entries: int
    rows: list[int] = field(repr=False)
    firsts: list[int] = field(repr=False)
    file: TraceSections = field(repr=False)

    def blocks(self, first: int = 0, count: int | None = None) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
        """First entry and classes of each stored block in a range of entries, cut to the range."""
        end = self.n_entries if count is None else first + count
        if not 0 <= first <= end <= self.n_entries:
            raise IndexError(f"entries {first} to {end} of a size map of {self.n_entries}")
        where = f"size map of allocation {self.allocation} in snapshot {self.snapshot}"
        at = max(bisect_right(self.firsts, first) - 1, 0)
        while at < len(self.rows) and self.firsts[at] < end:
            row, block_first = self.rows[at], self.firsts[at]
            offset = int(self.file.index[row]["offset"])
            payload = self.file.row_payload(row, where)
            n = fmt.SIZE_MAP_HEAD.unpack_from(payload)[5]
            frame = memoryview(payload)[fmt.SIZE_MAP_HEAD.size :]
            packed = np.frombuffer(self.file.decompress(frame, (n + 1) // 2, where, offset), np.uint8)
            classes = np.empty(2 * len(packed), np.uint8)
            np.bitwise_and(packed, 15, out=classes[0::2])
            np.right_shift(packed, 4, out=classes[1::2])
            classes = classes[:n]
            if np.any((classes >= fmt.N_CLASSES) & (classes != UNKNOWN_CLASS)):
                self.file.fail(where, offset, "a class that is not 0 to 7 or 15")
            start = max(first, block_first)
            yield start, classes[start - block_first : end - block_first]
            at += 1

    def read(self, first: int = 0, count: int | None = None) -> npt.NDArray[np.uint8]:
        """Classes 0 to 7 of `count` entries from `first`; 15 if unknown."""
        parts = [classes for _, classes in self.blocks(first, count)]
        return np.concatenate(parts) if parts else np.empty(0, np.uint8)


class ValueBlocks:
    """Collects the blocks of contents and size maps while a file is opened."""

    def __init__(self, file: TraceSections, allocations: list[Allocation], snapshots: list[Snapshot]) -> None:
        self._file, self._allocations, self._snapshots = file, allocations, snapshots
        self._contents: dict[tuple[int, int], tuple[Contents, int]] = {}
        self._maps: dict[tuple[int, int, str], tuple[SizeMap, int]] = {}

    def _head(self, row: int, size: int, section: str) -> bytes:
        entry = self._file.index[row]
        if entry["length"] < size:
            self._file.fail(section, entry["offset"], f"{entry['length']} bytes: expected at least {size}")
        return self._file.read(int(entry["offset"]) + SECTION.size, size, section)

    def _owner(self, snapshot: int, allocation: int, section: str, offset: int) -> Allocation:
        if snapshot >= len(self._snapshots):
            self._file.fail(section, offset, f"of snapshot {snapshot}, {len(self._snapshots)} come before it")
        if allocation >= len(self._allocations):
            self._file.fail(section, offset, f"of allocation {allocation}, {len(self._allocations)} come before it")
        return self._allocations[allocation]

    def add_contents(self, row: int) -> None:
        offset = int(self._file.index[row]["offset"])
        fields = fmt.CONTENTS_HEAD.unpack(self._head(row, fmt.CONTENTS_HEAD.size, "contents"))
        snapshot, allocation, page_bytes, whole, n_pages, first, count, zero = fields
        owner = self._owner(snapshot, allocation, "contents", offset)
        if not 0 < page_bytes <= fmt.MAX_PAGE_BYTES or page_bytes % ENTRY_BYTES or whole > 1 or zero:
            self._file.fail("contents", offset, f"pages of {page_bytes} bytes, whole = {whole}")
        contents, done = self._contents.get(
            (snapshot, allocation),
            (Contents(snapshot, allocation, page_bytes, bool(whole), n_pages, owner.bytes, [], [], self._file), 0),
        )
        if n_pages > contents.allocation_pages or (whole and n_pages != contents.allocation_pages):
            self._file.fail("contents", offset, f"{n_pages} pages, the allocation has {contents.allocation_pages}")
        if (page_bytes, bool(whole), n_pages) != (contents.page_bytes, contents.whole, contents.n_pages):
            self._file.fail("contents", offset, "differs in page size or number from the block before")
        if first != done or count > n_pages - first or (count == 0 and n_pages):
            self._file.fail("contents", offset, f"pages {first} to {first + count} of {n_pages}: expected from {done}")
        if count * page_bytes > fmt.CONTENTS_BLOCK_BYTES:
            self._file.fail("contents", offset, f"{count} pages of {page_bytes} bytes in one block, at most 1 MiB")
        contents.rows.append(row)
        contents.firsts.append(first)
        self._contents[snapshot, allocation] = contents, done + count

    def add_size_map(self, row: int) -> None:
        offset = int(self._file.index[row]["offset"])
        fields = fmt.SIZE_MAP_HEAD.unpack(self._head(row, fmt.SIZE_MAP_HEAD.size, "size map"))
        snapshot, allocation, name, n_entries, first, count, zero = fields
        owner = self._owner(snapshot, allocation, "size map", offset)
        compressor = name.rstrip(b"\0").decode("ascii", "replace")
        if n_entries != owner.entries or zero:
            self._file.fail("size map", offset, f"{n_entries} entries, the allocation has {owner.entries}")
        size_map, done = self._maps.get(
            (snapshot, allocation, compressor),
            (SizeMap(snapshot, allocation, compressor, n_entries, [], [], self._file), 0),
        )
        if first != done or not 0 < count <= min(n_entries - first, fmt.SIZE_MAP_BLOCK_ENTRIES):
            self._file.fail("size map", offset, f"{count} entries from {first} of {n_entries}: expected from {done}")
        size_map.rows.append(row)
        size_map.firsts.append(first)
        self._maps[snapshot, allocation, compressor] = size_map, done + count

    def finish(self, interrupted: bool) -> list[SizeMap]:
        """Give the snapshots their contents and return the size maps; of an interrupted file the complete ones."""
        for contents, done in self._contents.values():
            if done == contents.n_pages:
                self._snapshots[contents.snapshot].contents.append(contents)
            elif not interrupted:
                self._file.fail(
                    f"contents of allocation {contents.allocation} in snapshot {contents.snapshot}",
                    int(self._file.index[contents.rows[-1]]["offset"]),
                    f"{done} of {contents.n_pages} pages are present",
                )
        complete = []
        for size_map, done in self._maps.values():
            if done == size_map.n_entries:
                complete.append(size_map)
            elif not interrupted:
                self._file.fail(
                    f"size map of allocation {size_map.allocation} in snapshot {size_map.snapshot}",
                    int(self._file.index[size_map.rows[-1]]["offset"]),
                    f"{done} of {size_map.n_entries} entries are present",
                )
        return complete
