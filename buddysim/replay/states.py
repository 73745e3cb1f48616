"""Each entry's size state during a run: its size class now, and its class after a store of some kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from buddysim.buddy import SizeSource
from buddysim.replay.layout import Layout, Placed

AFTER = 4  # where the class after a store begins in a state


class EntryStates:
    """The state array that the engine reads and changes.

    It has room for the classes of one snapshot beside those of now. Which snapshot that is, is decided allocation by
    allocation: where kernels of several snapshots run at once and store to one, its classes change from chunk to chunk.

    Parameters
    ----------
    layout : where the allocations lie
    sizes : where the entries' sizes come from
    ordinal : of the first kernel that runs

    Attributes
    ----------
    array : uint8 (entries,), class now | class after a store << 4
    extrapolated_entries : entries whose class at their birth is that of a neighbouring sampled page
    used : by allocation and snapshot whose classes the run has used: entries, and those with a neighbour's class
    """

    def __init__(self, layout: Layout, sizes: SizeSource, ordinal: int) -> None:
        self.sizes, self._ordinal = sizes, ordinal
        self.array: NDArray[np.uint8] = np.zeros(layout.n_entries, dtype=np.uint8)
        self.extrapolated_entries = 0
        self.used: dict[tuple[int, int | None], tuple[int, int]] = {}
        self._after: dict[int, int | None] = {}  # by allocation: the snapshot that the classes after a store are of

    def begin(self, placed: Placed) -> None:
        """An allocation begins with sizes of its own."""
        index, states = placed.allocation.index, self._states(placed)
        snapshot = self._after[index] = self.sizes.at_birth(self._ordinal, index)
        taken = self.sizes.write_classes(snapshot, index, states)
        self.extrapolated_entries += taken
        self.used[index, snapshot] = len(states), taken
        states *= (1 << AFTER) + 1

    def end(self, placed: Placed) -> None:
        """An allocation is freed."""
        del self._after[placed.allocation.index]

    def writers(self, placed: Placed) -> tuple[int, int]:
        """First and last ordinal of the kernels whose stores leave what the array has; none if they are reversed."""
        return self.sizes.writers_before(self._after[placed.allocation.index], placed.allocation.index)

    def after_store(self, placed: Placed, ordinal: int) -> None:
        """The array gets what stores of the kernel of this ordinal to an allocation leave."""
        self._bring(placed, self.sizes.after_store(ordinal, placed.allocation.index))

    def copy(self, placed: Placed, first_entry: int, end_entry: int, point: int) -> None:
        """A copy or fill has written these entries of an allocation, after `point` launches."""
        self._bring(placed, self.sizes.after_copy(point, placed.allocation.index))
        states = self.array[first_entry:end_entry]
        states >>= AFTER
        states *= (1 << AFTER) + 1

    def _bring(self, placed: Placed, snapshot: int | None) -> None:
        index = placed.allocation.index
        if snapshot != self._after[index]:
            states = self._states(placed)
            self.used[index, snapshot] = len(states), self.sizes.write_classes(snapshot, index, states, AFTER)
            self._after[index] = snapshot

    def _states(self, placed: Placed) -> NDArray[np.uint8]:
        return self.array[placed.first_entry : placed.end_entry]
