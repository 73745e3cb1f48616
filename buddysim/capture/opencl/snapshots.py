"""Snapshots in memory, of which some may still be left out of the file: compressed pieces, equal ones stored once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import zstandard

from buddysim.capture.thinning import from_first_to_last

_PIECE_BYTES = 1 << 20


@dataclass
class Candidate:
    """Contents of buffers after `point` launches: per buffer the keys of its pieces."""

    point: int
    buffers: dict[int, list[bytes]] = field(default_factory=dict)


class Candidates:
    """Snapshots in the order in which they were taken, at most `most`: beyond it every second one is dropped.

    Parameters
    ----------
    most : even; the traced program takes snapshots at twice the distance from then on
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.taken: list[Candidate] = []
        self.last: Candidate | None = None
        self._pieces: dict[bytes, bytes] = {}
        self._compressor = zstandard.ZstdCompressor(level=1)
        self._open: Candidate | None = None

    def begin(self, point: int, last: bool) -> None:
        """The contents that follow are of this point; with `last` they are kept only if no launch follows."""
        if last:
            if self.last is None or self.last.point != point:
                self.last = Candidate(point)
            self._open = self.last
            return
        if not self.taken or self.taken[-1].point != point:
            self.taken.append(Candidate(point))
            if len(self.taken) > self._most:
                self.taken = self.taken[::2]
                self._drop_unused()
        self._open = self.taken[-1]

    def add(self, buffer: int, data: memoryview) -> None:
        """The next bytes of a buffer."""
        if self._open is None:
            return
        keys = self._open.buffers.setdefault(buffer, [])
        for start in range(0, len(data), _PIECE_BYTES):
            piece = data[start : start + _PIECE_BYTES]
            key = hashlib.blake2b(piece, digest_size=16).digest()
            if key not in self._pieces:
                self._pieces[key] = self._compressor.compress(piece)
            keys.append(key)

    def end(self) -> None:
        self._open = None

    def launched(self) -> None:
        """A launch follows: what was kept as the last state is dropped."""
        if self.last is not None:
            self.last = None
            self._drop_unused()

    def chosen(self, wanted: int) -> list[Candidate]:
        """At most `wanted` of them, nearest to equal distances from the first state to the last."""
        points = [candidate.point for candidate in self.taken]
        merged = list(self.taken)
        if self.last is not None and self.last.buffers:
            if points and points[-1] == self.last.point:
                merged[-1] = Candidate(self.last.point, merged[-1].buffers | self.last.buffers)
            else:
                merged.append(self.last)
        return [merged[index] for index in from_first_to_last([candidate.point for candidate in merged], wanted)]

    def pieces(self, candidate: Candidate, buffer: int) -> Iterator[npt.NDArray[np.uint8]]:
        """A buffer's bytes, piece by piece."""
        for key in candidate.buffers[buffer]:
            yield np.frombuffer(zstandard.ZstdDecompressor().decompress(self._pieces[key]), np.uint8)

    def _drop_unused(self) -> None:
        used = {
            key
            for candidate in [*self.taken, *([self.last] if self.last else [])]
            for keys in candidate.buffers.values()
            for key in keys
        }
        self._pieces = {key: data for key, data in self._pieces.items() if key in used}
