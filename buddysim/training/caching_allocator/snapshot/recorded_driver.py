"""The driver of a recorded run: it answers a request as it did then."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from buddysim.training.caching_allocator.driver import DeviceMemory
from buddysim.training.caching_allocator.snapshot.read import SnapshotEvent


class NotRecordedError(Exception):
    """A request to the driver that the recorded run didn't make."""


class RecordedDriver(DeviceMemory):
    """Device memory whose answers are recorded.

    Attributes
    ----------
    calls : calls to the driver that the run makes next
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: deque[SnapshotEvent] = deque()

    def expect(self, calls: Iterable[SnapshotEvent]) -> None:
        """Set the calls that the run makes next."""
        self.calls = deque(calls)

    def allocate(self, size: int) -> int | None:
        """Return the address that the run received; None where it had to give memory back first."""
        if not self.calls:
            raise NotRecordedError
        call = self.calls[0]
        if call.action == "segment_free":
            return None
        if call.action != "segment_alloc" or call.size != size:
            raise NotRecordedError
        self.calls.popleft()
        self.used += size
        return call.address

    def free(self, address: int, size: int) -> None:
        """Note a segment that is given back."""
        self.used -= size
        self._drop("segment_free", address)

    def available(self, size: int) -> bool:
        """Whether the run mapped pages of this size now, or gave memory back first."""
        if not self.calls:
            raise NotRecordedError
        call = self.calls[0]
        if call.action in ("segment_free", "segment_unmap"):
            return False
        if call.action != "segment_map" or call.size != size:
            raise NotRecordedError
        self.calls.popleft()
        return True

    def reserve(self, size: int) -> int:
        """Return the address of the pages that the run mapped next."""
        for call in self.calls:
            if call.action == "segment_map":
                return call.address
        raise NotRecordedError

    def give_back(self, size: int) -> None:
        """Note pages that are given back."""
        self.used -= size
        for call in self.calls:
            if call.action == "segment_unmap" and call.size == size:
                self.calls.remove(call)
                return
        raise NotRecordedError

    def _drop(self, action: str, address: int) -> None:
        for call in self.calls:
            if call.action == action and call.address == address:
                self.calls.remove(call)
                return
        raise NotRecordedError
