"""A snapshot's record, run through the allocator: does it decide as the recorded one did?

Each event is compared with what the allocator does in the state that the recorded one had. After a difference the
allocator is put into the recorded state, so that a difference counts once. Addresses of segments are the driver's, so
the recorded ones are taken; within segments they are the allocator's own and are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from buddysim.training.caching_allocator import release
from buddysim.training.caching_allocator.allocator import AllocationFailure, CudaAllocator, Owner
from buddysim.training.caching_allocator.blocks import SegmentBlock
from buddysim.training.caching_allocator.rounding import SMALL_REQUEST, rounded_size
from buddysim.training.caching_allocator.snapshot.adopt import adopt, adopt_segment, take_at
from buddysim.training.caching_allocator.snapshot.initial_state import state_before
from buddysim.training.caching_allocator.snapshot.read import MemorySnapshot, SnapshotEvent
from buddysim.training.caching_allocator.snapshot.recorded_driver import NotRecordedError, RecordedDriver
from buddysim.training.options.allocator_settings import AllocatorSettings

_EXAMPLES = 5


@dataclass
class EventComparison:
    """How the allocator's decisions compare with the recorded ones.

    Attributes
    ----------
    compared : events by action
    differences : those of another outcome, by what differs
    examples : the first differences, with the event's index
    assumed : blocks in use before the record whose size isn't known
    contradictions : events that the rest of the snapshot excludes
    blocks, equal_blocks : of the state at the end, and those that the allocator has too
    peak_allocated, peak_active, peak_reserved : bytes, in the recorded order with the recorded decisions
    """

    compared: Counter[str] = field(default_factory=Counter)
    differences: Counter[str] = field(default_factory=Counter)
    examples: list[tuple[int, str]] = field(default_factory=list)
    assumed: int = 0
    contradictions: int = 0
    blocks: int = 0
    equal_blocks: int = 0
    peak_allocated: int = 0
    peak_active: int = 0
    peak_reserved: int = 0

    @property
    def equal_events(self) -> int:
        """Events with the same outcome."""
        return self.compared.total() - self.differences.total()


def compare_events(snapshot: MemorySnapshot, settings: AllocatorSettings | None = None) -> EventComparison:
    """Run a snapshot's record through the allocator, event by event.

    Parameters
    ----------
    settings : of the allocator; those of the snapshot if not given
    """
    return _Comparing(snapshot, settings or snapshot.settings).run()


class _Comparing:
    """A comparison in progress."""

    def __init__(self, snapshot: MemorySnapshot, settings: AllocatorSettings) -> None:
        self.snapshot = snapshot
        self.driver = RecordedDriver()
        self.allocator = CudaAllocator(settings, self.driver, device_memory=1 << 50)
        before = state_before(snapshot)
        self.used: dict[int, SegmentBlock] = adopt(self.allocator, before.segments)
        self.result = EventComparison(assumed=before.assumed, contradictions=before.contradictions)
        self.owners: dict[int, Owner] = {
            block.address: segment.owner for segment in snapshot.segments for block in segment.blocks
        }
        self.calls: list[SnapshotEvent] = []

    def run(self) -> EventComparison:
        for index, event in enumerate(self.snapshot.events):
            action = event.action
            if action in ("snapshot", "oom"):
                continue
            self.result.compared[action] += 1
            if action.startswith("segment_"):
                self.calls.append(event)
            elif action == "alloc":
                self._allocate(index, event)
            else:
                self._release_cache()
                self._free(event)
        self._release_cache()
        usage = self.allocator.usage
        self.result.peak_allocated, self.result.peak_active = usage.peak_allocated, usage.peak_active
        self.result.peak_reserved = usage.peak_reserved
        self._compare_end()
        return self.result

    def _allocate(self, index: int, event: SnapshotEvent) -> None:
        calls, self.calls = self.calls, []
        owner = self.owners.get(event.address, (0, 0))
        small = rounded_size(event.size, self.allocator.settings) <= SMALL_REQUEST
        pool = self.allocator.pool(event.stream, small, owner)
        self.driver.expect(calls)
        difference = self._served(event, calls, owner)
        if not difference:
            return
        self.result.differences[difference] += 1
        if len(self.result.examples) < _EXAMPLES:
            self.result.examples.append((index, difference))
        self._follow(self.driver.calls)
        block = take_at(self.allocator, pool, event.address, event.size)
        if block is None:
            self.result.contradictions += 1
        else:
            self.used[event.address] = block

    def _served(self, event: SnapshotEvent, calls: list[SnapshotEvent], owner: Owner) -> str:
        """Serve a request as the allocator does; say what differs from the recorded outcome, "" for nothing."""
        try:
            if self._empties_the_cache(calls):
                release.release_all(self.allocator)
            block = self.allocator.allocate(event.size, event.stream, owner)
        except (NotRecordedError, AllocationFailure):
            return "a segment where the run has a cached block"
        if not self.driver.calls and block.address == event.address:
            self.used[event.address] = block
            return ""
        self.allocator.free(block)
        return "a cached block where the run has a segment" if self.driver.calls else "another block"

    def _empties_the_cache(self, calls: list[SnapshotEvent]) -> bool:
        """Whether calls to the driver give back all that can be, as ``torch.cuda.empty_cache`` does."""
        freed = {call.address for call in calls if call.action == "segment_free"}
        if any(call.action == "segment_unmap" for call in calls):
            return True
        return bool(freed) and freed == {
            block.address
            for (_, _, owner), pool in self.allocator.pools.items()
            for block in pool
            if owner == (0, 0) and not block.split and not block.expandable
        }

    def _release_cache(self) -> None:
        """Give cached memory back where the run did so without a request."""
        if not self.calls:
            return
        calls, self.calls = self.calls, []
        self.driver.expect(calls)
        try:
            release.release_all(self.allocator)
        except NotRecordedError:
            self.result.differences["more memory given back"] += 1
        if self.driver.calls:
            self.result.differences["less memory given back"] += 1
            self._follow(self.driver.calls)

    def _follow(self, calls: Iterable[SnapshotEvent]) -> None:
        """Do what the run did at the driver."""
        for call in list(calls):
            small = call.size == 2 << 20
            pool = self.allocator.pool(call.stream, small)
            if call.action == "segment_alloc":
                adopt_segment(self.allocator, call.address, call.size, pool)
            elif call.action == "segment_free":
                block = next((one for one in pool if one.address == call.address and not one.split), None)
                if block is not None:
                    pool.remove(block)
                    self.allocator.usage.reserved -= block.size
                    self.driver.used -= block.size
        self.driver.expect(())

    def _free(self, event: SnapshotEvent) -> None:
        block = self.used.get(event.address)
        if block is None:
            self.result.contradictions += 1
            return
        if event.action == "free_requested":
            self.allocator.request_free(block)
            return
        if block.state == "allocated":
            self.allocator.request_free(block)
        del self.used[event.address]
        self.allocator.complete_free(block)

    def _compare_end(self) -> None:
        recorded = {
            (block.address, block.size, block.state) for segment in self.snapshot.segments for block in segment.blocks
        }
        simulated = {(block.address, block.size, block.state) for block in self.used.values()}
        for pool in self.allocator.pools.values():
            simulated |= {(block.address, block.size, "free") for block in pool}
        self.result.blocks = len(recorded)
        self.result.equal_blocks = len(recorded & simulated)
