"""What a memcpy or memset changes where it writes: sizes of entries, and lines of the L2."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from buddysim.replay.copies.copied_range import CopiedRange
from buddysim.replay.primitives.kinds import Placement
from buddysim.trace import Trace

if TYPE_CHECKING:
    from buddysim.replay.driver import ReplayRun


class CopyEffects:
    """The effects of a run's copies.

    Parameters
    ----------
    trace : the run's
    """

    def __init__(self, trace: Trace) -> None:
        self.launches = [kernel.event for kernel in trace.kernels]

    def overwrite(self, run: ReplayRun, position: int, written: CopiedRange, end_entry: int) -> None:
        """Apply a part of the copy at an event's position.

        The L2 caches what was written, or drops its sectors; `end_entry` is behind the last entry of the whole copy.
        """
        first, end = written.entries
        self._resize(run, position, written)
        first_cached = max(first, end_entry - run.engine.max_installed_entries)
        fills_l2 = (
            run.machine.l2.fill_on_memcpy
            and first_cached < end
            and run.placement_of(written.allocation_range)[0] != Placement.HOST
        )
        if fills_l2:
            self.make_accessible(run, written, first_cached)
        run.engine.overwrite(first, end, *written.whole_sectors, fills_l2)

    def make_accessible(self, run: ReplayRun, copied: CopiedRange, first_entry: int) -> None:
        """Make the state of those entries of a range, from one of them on, that have none."""
        allocation_range = copied.allocation_range
        for part in run.lazy_allocations.materialize(allocation_range, first_entry, copied.entries[1]):
            run.materialize(allocation_range, *part)

    def _resize(self, run: ReplayRun, position: int, written: CopiedRange) -> None:
        """Give entries the sizes of their new contents; sizes at the run's start include earlier copies."""
        allocation_range = written.allocation_range
        if run.entry_classes is None or not run.launches:
            return
        before = bisect_left(self.launches, position)
        launched = run.trace.kernels[before - 1].launch_index + 1 if before else 0
        run.entry_classes.copy(allocation_range, *written.entries, launched)
        run.engine.set_writer_launches(allocation_range.region, *run.entry_classes.writers(allocation_range))
