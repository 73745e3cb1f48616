"""Reservation tables: the reserved slots of a bus or of activations."""

from __future__ import annotations

from copy import copy
from typing import Any


class RefReservationTable:
    """Slots of one length, all of them from the start of the run on; refreshes reserve their own.

    Parameters
    ----------
    length : of a slot (ps)
    refresh_interval, refresh_time : tREFI (0: none) and tRFC (ps)
    offset : of refreshes from multiples of the interval (ps)
    """

    def __init__(self, length: int, refresh_interval: int, refresh_time: int, offset: int = 0) -> None:
        self.length = length
        self.refresh_interval, self.refresh_time, self.offset = refresh_interval, refresh_time, offset
        self.taken: set[int] = set()

    def __deepcopy__(self, memo: dict[int, Any]) -> RefReservationTable:
        """Return a table of its own with the same slots: numbers need no copies."""
        other = copy(self)
        other.taken = set(self.taken)
        return other

    def take(self, slot: int) -> int:
        """Takes the first free slot at or after one."""
        while slot in self.taken or self.refreshes(slot):
            slot += 1
        self.taken.add(slot)
        return slot

    def refreshes(self, slot: int) -> bool:
        """Return whether a refresh reserves a slot."""
        if not self.refresh_interval:
            return False
        last = ((slot + 1) * self.length - self.offset) // self.refresh_interval
        return any(self._begin(k) <= slot < self._end(k) for k in (last - 1, last) if self._time(k) > 0)

    def _time(self, k: int) -> int:
        return k * self.refresh_interval + self.offset

    def _begin(self, k: int) -> int:
        return self._time(k) // self.length

    def _end(self, k: int) -> int:
        return (self._time(k) + self.refresh_time) // self.length
