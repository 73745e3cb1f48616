"""A snapshot of a real run next to the simulation of a model: allocator, peaks, what they consist of."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, NamedTuple

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.tape import Tape
from buddysim.training.caching_allocator.snapshot.event_replay import EventComparison, compare_events
from buddysim.training.caching_allocator.snapshot.initial_state import state_before
from buddysim.training.caching_allocator.snapshot.lifetimes import (
    PeakContents,
    lifetimes_of_snapshot,
    lifetimes_of_tape,
    peak_contents,
)
from buddysim.training.caching_allocator.snapshot.read import MemorySnapshot, read_snapshot
from buddysim.training.caching_allocator.tape_replay import AllocatorReplay, replay_tape
from buddysim.training.options.allocator_settings import AllocatorSettings


class SizeDifference(NamedTuple):
    """Blocks of one kind and size, of which the run and the simulation have different numbers at their peaks."""

    kind: str
    size: int
    measured: int
    predicted: int

    @property
    def bytes(self) -> int:
        """Bytes that the simulation has more."""
        return (self.predicted - self.measured) * self.size


@dataclass(frozen=True)
class SnapshotComparison:
    """A run's snapshot and a simulated step.

    Attributes
    ----------
    path : the snapshot's file
    events : the allocator's decisions, event by event
    measured, predicted : what is in use at the peak of the run, and of the step
    replay : the step in the allocator, with the run's settings
    """

    path: str
    snapshot: MemorySnapshot
    events: EventComparison
    measured: PeakContents
    predicted: PeakContents
    replay: AllocatorReplay

    def differences(self) -> list[SizeDifference]:
        """Return the sizes whose numbers differ, most bytes first."""
        both = {*self.measured.sizes, *self.predicted.sizes}
        rows = [SizeDifference(*one, self.measured.sizes[one], self.predicted.sizes[one]) for one in both]
        return sorted((row for row in rows if row.bytes), key=lambda row: (-abs(row.bytes), row.kind, row.size))

    def to_dict(self) -> dict[str, Any]:
        """Return the whole comparison as plain values; sizes in bytes."""
        events, replay = self.events, self.replay
        return {
            "snapshot": self.path,
            "settings": self.snapshot.settings.text(),
            "events": dict(events.compared),
            "event_differences": dict(events.differences),
            "contradictions": events.contradictions,
            "assumed_blocks": events.assumed,
            "blocks": events.blocks,
            "equal_blocks": events.equal_blocks,
            "measured": {
                "peak_bytes": events.peak_allocated,
                "peak_active_bytes": events.peak_active,
                "peak_reserved_bytes": events.peak_reserved,
                "peak_phase": self.measured.phase,
                "by_kind": self.measured.by_kind,
            },
            "simulated": {
                "peak_bytes": replay.peak_allocated_bytes,
                "peak_active_bytes": replay.peak_active_bytes,
                "peak_reserved_bytes": replay.peak_reserved_bytes,
                "peak_phase": self.predicted.phase,
                "by_kind": self.predicted.by_kind,
            },
            "size_differences": [{**row._asdict(), "bytes": row.bytes} for row in self.differences()],
        }


def compare_with_snapshot(
    path: str | os.PathLike[str], tape: Tape, settings: AllocatorSettings | None = None, workspace: int = 0
) -> SnapshotComparison:
    """Compare a snapshot of a real run with a recorded step.

    Parameters
    ----------
    path : what ``torch.cuda.memory._dump_snapshot`` writes
    tape : the step, with as many iterations as the run's record has
    settings : of the allocator; those of the snapshot if not given
    workspace : bytes that cuBLAS takes in each thread

    Raises
    ------
    BuddysimError
        where the file isn't such a snapshot
    """
    snapshot = read_snapshot(path)
    settings = settings or snapshot.settings
    try:
        events = compare_events(snapshot, settings)
    except BuddysimError as error:
        raise BuddysimError(f"{os.fspath(path)}: {error}") from None
    return SnapshotComparison(
        os.fspath(path),
        snapshot,
        events,
        peak_contents(lifetimes_of_snapshot(snapshot, state_before(snapshot))),
        peak_contents(lifetimes_of_tape(tape, settings, workspace)),
        replay_tape(tape, settings, workspace=workspace),
    )
