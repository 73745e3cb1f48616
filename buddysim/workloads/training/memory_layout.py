"""Contents of the allocator's pool over an iteration, as size classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from buddysim.compress import ENTRY_BYTES
from buddysim.workloads.training.observe import COMPRESSORS, Classes, ObservedIteration
from buddysim.workloads.training.tensor_layout import TensorLayout


class MemoryContents:
    """The size class of every entry of every segment, for each compressor of `observe`.

    Before its first write, a block holds the contents of the last storage there: of the last iteration, if it was
    observed, or of this one. A storage's last entry is padded with zeros; the rest of its block is unchanged.

    Parameters
    ----------
    layout : of the iteration's storages
    """

    def __init__(self, layout: TensorLayout) -> None:
        self.layout = layout
        self.segments: list[Classes] = [
            np.zeros((len(COMPRESSORS), one.bytes // ENTRY_BYTES), np.uint8) for one in layout.pool
        ]

    def put(self, storage: int, classes: Classes) -> int | None:
        """Write a storage; return the number of its segment."""
        address, segment = self.layout.addresses[storage], self.layout.segments[storage]
        if address is None or segment is None:
            return None
        first = (address - self.layout.pool[segment].base) // ENTRY_BYTES
        self.segments[segment][:, first : first + classes.shape[1]] = classes
        return segment

    def begin(self, iteration: ObservedIteration) -> None:
        """Restore the contents at the beginning of an iteration."""
        for _ in self.run(iteration):
            pass
        for storage, classes in iteration.before.items():
            self.put(storage, classes)

    def run(self, iteration: ObservedIteration) -> Iterator[tuple[int, set[int]]]:
        """Go through an iteration; yield the number of each operator, and the segments that it changed."""
        assert iteration.graph is not None
        at = 0
        for operator in range(len(iteration.graph.operators)):
            changed = set()
            while at < len(iteration.writes) and iteration.writes[at].operator <= operator:
                segment = self.put(iteration.writes[at].storage, iteration.writes[at].classes)
                if segment is not None:
                    changed.add(segment)
                at += 1
            yield operator, changed
