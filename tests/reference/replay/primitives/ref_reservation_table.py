"""The reference model of the bus reservations in `dram`: the slots taken as a set."""

from __future__ import annotations


class RefBusReservations:
    """The data bus of one pseudo-channel in slots of a burst.

    Parameters
    ----------
    burst_ps : length of a slot
    ccd_slots : slots from a burst to the next one of a request
    refresh_ps, refresh_interval_ps, offset_ps : duration and interval of refreshes (0: none), and the first one's time
    """

    def __init__(
        self, burst_ps: int, ccd_slots: int, refresh_ps: int = 0, refresh_interval_ps: int = 0, offset_ps: int = 0
    ) -> None:
        self.burst_ps, self.ccd_slots = burst_ps, ccd_slots
        self.refresh_ps, self.refresh_interval_ps = refresh_ps, refresh_interval_ps
        self.first_ps = offset_ps or refresh_interval_ps
        self.taken: set[int] = set()

    def reserve(self, slot: int, bursts: int) -> tuple[int, int]:
        """Takes slots for a request's bursts, at or after `slot`; first and last."""
        first = last = self._take(slot)
        for _ in range(1, bursts):
            last = self._take(last + self.ccd_slots)
        return first, last

    def release(self, slot: int) -> None:
        """Releases a slot, unless a refresh has it."""
        self.taken.discard(slot)

    def _take(self, slot: int) -> int:
        while slot in self.taken or self._refreshes(slot):
            slot += 1
        self.taken.add(slot)
        return slot

    def _refreshes(self, slot: int) -> bool:
        if not self.refresh_ps:
            return False
        latest = ((slot + 1) * self.burst_ps - self.first_ps) // self.refresh_interval_ps
        times = [self.first_ps + k * self.refresh_interval_ps for k in range(max(0, latest - 1), latest + 1)]
        return any(t // self.burst_ps <= slot < (t + self.refresh_ps) // self.burst_ps for t in times)
