"""Each entry's size state during a run: its size class now, and its class after the next write-back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from buddysim.buddy import SizeSource
from buddysim.replay.layout import Layout


class EntryStates:
    """The state array that the engine reads and changes.

    Parameters
    ----------
    layout : where the allocations lie
    sizes : where the entries' sizes come from
    ordinal : of the first kernel that runs

    Attributes
    ----------
    array : uint8 (entries,), class now | class after a write-back << 4
    extrapolated_entries : entries whose class at the start is that of a neighbouring sampled page
    """

    def __init__(self, layout: Layout, sizes: SizeSource, ordinal: int) -> None:
        self.layout, self.sizes = layout, sizes
        self.array: NDArray[np.uint8] = np.zeros(layout.n_entries, dtype=np.uint8)
        self.extrapolated_entries = 0
        self._next: int | None = sizes.first_snapshot(ordinal)
        for placed in layout.placed:
            now = self.array[placed.first_entry : placed.end_entry]
            self.extrapolated_entries += sizes.write_classes(self._next, placed.allocation.index, now)
            now |= now << 4
        self.before_kernel(ordinal)

    def before_kernel(self, ordinal: int) -> None:
        """From now on write-backs take the sizes of the snapshot that follows the kernel of this ordinal."""
        following = self.sizes.next_snapshot(ordinal)
        if following == self._next:
            return
        self._next = following
        for placed in self.layout.placed:
            state = self.array[placed.first_entry : placed.end_entry]
            classes = np.empty(len(state), dtype=np.uint8)
            self.sizes.write_classes(following, placed.allocation.index, classes)
            state &= 0x0F
            state |= classes << 4

    def overwrite(self, first_entry: int, end_entry: int) -> None:
        """A copy or fill has written these entries: their next sizes hold at once."""
        state = self.array[first_entry:end_entry]
        state &= 0xF0
        state |= state >> 4
