"""Snapshots in memory before the file is written: sizes and stored pages, equal segments once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntFlag

import numpy as np
import numpy.typing as npt
import zstandard

from buddysim.base.parsers.zstd import decompressed
from buddysim.capture.snapshot_selection import select_first_to_last
from buddysim.trace.format import PAGE_BYTES

_SEGMENT_BYTES = 1 << 20
_SEGMENT_PAGES = _SEGMENT_BYTES // PAGE_BYTES


class Reason(IntFlag):
    """Why contents were sent: `SnapshotReason` of ``runtime/wire.h``."""

    PERIODIC = 1
    AROUND_LAUNCH = 2
    LAST = 4


@dataclass
class Candidate:
    """Contents of buffers after `launch_index` launches: keys of each buffer's segments."""

    launch_index: int
    buffers: dict[int, list[bytes]] = field(default_factory=dict)


@dataclass(frozen=True)
class SelectedSnapshot:
    """A snapshot of the file.

    Attributes
    ----------
    of_run : whether it is one of the snapshots over the run; else it was taken next to a traced launch
    sizes, contents : buffers with sizes, and those with stored pages
    """

    launch_index: int
    of_run: bool
    sizes: Candidate
    contents: Candidate


class Candidates:
    """Snapshots in the order in which they were taken; those around traced launches stay whatever happens to others.

    Bytes are classified when they come. What is kept of a snapshot is its sizes and, of its bytes, the pages that the
    file may hold, both compressed.

    Parameters
    ----------
    most : even; of more than this many taken in turn, every second one is dropped, and the traced program takes
        snapshots at twice the distance from then on
    contents_every : the bytes of every n-th page of 8 KiB are kept, 0: of none
    classify : gives the size classes of bytes, one of each 128 B
    """

    def __init__(
        self, most: int, contents_every: int, classify: Callable[[npt.NDArray[np.uint8]], npt.NDArray[np.uint8]]
    ) -> None:
        self._most, self._every, self._classify = most, contents_every, classify
        self.taken: list[Candidate] = []
        self.around: dict[int, Candidate] = {}
        self.last: Candidate | None = None
        self._sizes: dict[bytes, bytes] = {}  # by the digest of a piece: its classes
        self._pages: dict[tuple[bytes, int], bytes] = {}  # and by its first page modulo `contents_every`: kept bytes
        self._compressor = zstandard.ZstdCompressor(level=1)
        self._open: list[Candidate] = []
        self._with_contents = False

    def begin(self, launch_index: int, reasons: Reason) -> None:
        """Begins a snapshot at a launch index; one taken for the last reason stays only if no launch follows."""
        self._open = []
        if Reason.LAST in reasons:
            if self.last is None or self.last.launch_index != launch_index:
                self.last = Candidate(launch_index)
            self._open.append(self.last)
        if Reason.PERIODIC in reasons:
            if not self.taken or self.taken[-1].launch_index != launch_index:
                self.taken.append(Candidate(launch_index))
                if len(self.taken) > self._most:
                    self.taken = self.taken[::2]
                    self._drop_unused()
            self._open.append(self.taken[-1])
        if Reason.AROUND_LAUNCH in reasons:
            self._open.append(self.around.setdefault(launch_index, Candidate(launch_index)))
        self._with_contents = reasons != Reason.AROUND_LAUNCH

    def add(self, buffer: int, offset: int, data: memoryview) -> None:
        """Bytes of a buffer from an offset, a multiple of the piece that are kept together; in order."""
        if not offset:
            for candidate in self._open:
                candidate.buffers[buffer] = []
        for start in range(0, len(data) if self._open else 0, _SEGMENT_BYTES):
            segment = data[start : start + _SEGMENT_BYTES]
            key = hashlib.blake2b(segment, digest_size=16).digest()
            if key not in self._sizes:
                classes = self._classify(np.frombuffer(segment, np.uint8))
                self._sizes[key] = self._compressor.compress(classes.tobytes())
            first_page = (offset + start) // PAGE_BYTES
            if self._with_contents and self._every and (key, first_page % self._every) not in self._pages:
                stored = b"".join(
                    segment[at : at + PAGE_BYTES] for at in self._stored_offsets(first_page, len(segment))
                )
                self._pages[key, first_page % self._every] = self._compressor.compress(stored)
            for candidate in self._open:
                candidate.buffers[buffer].append(key)

    def _stored_offsets(self, first_page: int, segment_bytes: int) -> range:
        """Offsets in a segment of the stored pages: page numbers that are multiples of `contents_every`."""
        return range(-first_page % self._every * PAGE_BYTES, segment_bytes, self._every * PAGE_BYTES)

    def end(self) -> None:
        self._open = []

    def launched(self) -> None:
        """A launch follows: what was kept as the last state is dropped."""
        if self.last is not None:
            self.last = None
            self._drop_unused()

    def select(self, count: int) -> list[Candidate]:
        """At most `count` snapshots of the run, nearest to equal distances from the first to the last."""
        points = [candidate.launch_index for candidate in self.taken]
        merged = list(self.taken)
        if self.last is not None and self.last.buffers:
            if points and points[-1] == self.last.launch_index:
                merged[-1] = Candidate(self.last.launch_index, merged[-1].buffers | self.last.buffers)
            else:
                merged.append(self.last)
        return [
            merged[index] for index in select_first_to_last([candidate.launch_index for candidate in merged], count)
        ]

    def for_file(self, count: int) -> list[SelectedSnapshot]:
        """At most `count` snapshots of the run, and those around traced launches, one per launch index, ascending."""
        of_run = {candidate.launch_index: candidate for candidate in (self.select(count) if count else [])}
        selected = []
        for launch_index in sorted(of_run | self.around):
            contents, around = (
                of_run.get(launch_index, Candidate(launch_index)),
                self.around.get(launch_index, Candidate(launch_index)),
            )
            sizes = Candidate(launch_index, around.buffers | contents.buffers)
            selected.append(SelectedSnapshot(launch_index, launch_index in of_run, sizes, contents))
        return selected

    def sizes(self, candidate: Candidate, buffer: int) -> npt.NDArray[np.uint8]:
        """The size class of every entry of a buffer."""
        return self._joined(self._sizes[key] for key in candidate.buffers[buffer])

    def contents(self, candidate: Candidate, buffer: int) -> npt.NDArray[np.uint8] | None:
        """The bytes of a buffer's kept pages; None where none are."""
        if not self._every or buffer not in candidate.buffers:
            return None
        segments = enumerate(candidate.buffers[buffer])
        return self._joined(self._pages[key, number * _SEGMENT_PAGES % self._every] for number, key in segments)

    @staticmethod
    def _joined(parts: Iterable[bytes]) -> npt.NDArray[np.uint8]:
        return np.frombuffer(b"".join(decompressed(part, "a kept page") for part in parts), np.uint8)

    def _drop_unused(self) -> None:
        stored = [*self.taken, *([self.last] if self.last else [])]
        pages = {key for candidate in stored for keys in candidate.buffers.values() for key in keys}
        sizes = pages | {key for one in self.around.values() for keys in one.buffers.values() for key in keys}
        self._sizes = {key: data for key, data in self._sizes.items() if key in sizes}
        self._pages = {(key, phase): data for (key, phase), data in self._pages.items() if key in pages}
