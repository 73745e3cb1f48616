"""What a run had allocated before its record begins: the segments at its end, with every event undone, last first."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace

from buddysim.training.caching_allocator.allocator import Owner
from buddysim.training.caching_allocator.rounding import SMALL_REQUEST, SMALL_SEGMENT, rounded_size
from buddysim.training.caching_allocator.snapshot.read import (
    MemorySnapshot,
    SnapshotBlock,
    SnapshotEvent,
    SnapshotSegment,
)
from buddysim.training.options.allocator_settings import AllocatorSettings


@dataclass
class StateBefore:
    """Segments with their blocks in use, before the record.

    Attributes
    ----------
    assumed : blocks in use whose size is assumed, as they are freed before the end and only their requests are known
    contradictions : events that the state at the end excludes, so that the record isn't whole
    """

    segments: list[SnapshotSegment] = field(default_factory=list)
    assumed: int = 0
    contradictions: int = 0


def state_before(snapshot: MemorySnapshot) -> StateBefore:
    """Return what was in use before the first event of a snapshot's record."""
    state = StateBefore()
    undone = _Undone(snapshot, state)
    for event in reversed(snapshot.events):
        undone.undo(event)
    state.segments = undone.segments(snapshot)
    return state


@dataclass
class _Range:
    """Memory of a segment, or of a part of an expandable one."""

    size: int
    stream: int
    small: bool
    expandable: bool
    owner: Owner


class _Undone:
    """Segments and blocks in use, as events are undone."""

    def __init__(self, snapshot: MemorySnapshot, state: StateBefore) -> None:
        self.state = state
        self.ranges: dict[int, _Range] = {}
        self.used: dict[int, SnapshotBlock] = {}
        for one in snapshot.segments:
            self.ranges[one.address] = _Range(one.size, one.stream, one.small, one.expandable, one.owner)
            self.used |= {block.address: block for block in one.blocks if block.state != "free"}
        self.unsized: set[int] = set()

    def undo(self, event: SnapshotEvent) -> None:
        action, address, size = event.action, event.address, event.size
        if action == "alloc":
            self._expect(self.used.pop(address, None) is not None)
            self.unsized.discard(address)
        elif action == "free_completed":
            self._expect(address not in self.used)
            self.used[address] = SnapshotBlock(address, 0, size, "pending")
            self.unsized.add(address)
        elif action == "free_requested":
            block = self.used.get(address)
            self._expect(block is not None)
            if block is not None:
                self.used[address] = block._replace(state="allocated")
        elif action == "segment_alloc":
            self._expect(self.ranges.pop(address, None) is not None)
        elif action == "segment_free":
            self._expect(address not in self.ranges)
            self.ranges[address] = _Range(size, event.stream, size == SMALL_SEGMENT, False, (0, 0))
        elif action in ("segment_map", "segment_unmap"):
            self._undo_pages(event)

    def _undo_pages(self, event: SnapshotEvent) -> None:
        """Pages that were mapped leave the range that holds them; those that were unmapped are mapped again."""
        if event.action == "segment_unmap":
            self._map_again(event)
            return
        start = max((one for one in self.ranges if one <= event.address), default=-1)
        known = self.ranges.get(start)
        end = event.address + event.size
        self._expect(known is not None and start + known.size >= end)
        if known is None or start + known.size < end:
            return
        behind = start + known.size - end
        known.size = event.address - start
        if not known.size:
            del self.ranges[start]
        if behind:
            self.ranges[end] = _Range(behind, known.stream, known.small, True, known.owner)

    def _map_again(self, event: SnapshotEvent) -> None:
        """One range of the pages and of the ranges that they touch: the ``segment_map`` before may span them all."""
        start, end = event.address, event.address + event.size
        pages = _Range(event.size, event.stream, event.size < SMALL_SEGMENT * 10, True, (0, 0))
        for address, one in list(self.ranges.items()):
            touches = address + one.size == event.address or address == end
            if touches and one.expandable and one.stream == event.stream:
                pages = replace(one, size=one.size + pages.size)
                start = min(start, address)
                del self.ranges[address]
        self.ranges[start] = pages

    def _expect(self, consistent: bool) -> None:
        self.state.contradictions += not consistent

    def segments(self, snapshot: MemorySnapshot) -> list[SnapshotSegment]:
        """Return the segments that are left, each with its blocks in use."""
        addresses = sorted(self.used)
        behind = _first_behind(sorted(self.unsized), snapshot)
        segments: list[SnapshotSegment] = []
        for start, one in sorted(self.ranges.items()):
            end = start + one.size
            inside = addresses[bisect_left(addresses, start) : bisect_left(addresses, end)]
            blocks = []
            for address, following in zip(inside, [*inside, end][1:], strict=True):
                block = self.used[address]
                if address in self.unsized:
                    self.state.assumed += 1
                    block = _sized(block, following, behind.get(address, following), one, snapshot.settings)
                blocks.append(block)
            segments.append(
                SnapshotSegment(start, one.size, one.stream, one.small, one.expandable, one.owner, tuple(blocks))
            )
        return segments


def _first_behind(unsized: list[int], snapshot: MemorySnapshot) -> dict[int, int]:
    """Where the first request behind each of some blocks is served, while the block is in use.

    That is where the free memory behind the block begins.
    """
    behind: dict[int, int] = {}
    freed: set[int] = set()
    for event in snapshot.events:
        if event.action == "free_requested":
            freed.add(event.address)
        elif event.action == "alloc":
            index = bisect_left(unsized, event.address) - 1
            if index >= 0 and unsized[index] not in freed:
                behind.setdefault(unsized[index], event.address)
    return behind


def _sized(block: SnapshotBlock, end: int, behind: int, of: _Range, settings: AllocatorSettings) -> SnapshotBlock:
    """A block with a size: the rounded request, and a remainder that was too small to be split off.

    Parameters
    ----------
    end : of the segment, or the next block in use
    behind : where the next request behind the block is served
    """
    rounded = rounded_size(block.requested, settings)
    if not of.small and not of.expandable and rounded > SMALL_REQUEST:
        for limit in (min(behind, end), end):
            left = limit - block.address - rounded
            if 0 <= left <= SMALL_REQUEST:
                rounded += left
                break
    return block._replace(size=min(rounded, end - block.address))
