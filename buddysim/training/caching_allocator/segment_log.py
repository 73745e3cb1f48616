"""Segments that the allocator takes from the driver and gives back, by the names that PyTorch's snapshots have."""

from __future__ import annotations

from typing import Literal, NamedTuple

SegmentAction = Literal["segment_alloc", "segment_free", "segment_map", "segment_unmap"]


class SegmentEvent(NamedTuple):
    """One call to the driver."""

    action: SegmentAction
    address: int
    size: int


class SegmentLog:
    """The calls to the driver in order; newest last."""

    def __init__(self) -> None:
        self.events: list[SegmentEvent] = []

    def note(self, action: SegmentAction, address: int, size: int) -> None:
        """Add a call."""
        self.events.append(SegmentEvent(action, address, size))

    def taken(self) -> list[SegmentEvent]:
        """Return the calls since the last time, and forget them."""
        events, self.events = self.events, []
        return events
