"""Reservation tables: which slots of a bus, or of activations, are taken."""

from __future__ import annotations

from tests.reference.replay.ports import RefClock

SLOTS, WORD = 16384, 64


class RefReservationTable:
    """Slots of one length; refreshes reserve their own.

    Parameters
    ----------
    clock : the run's
    length : of a slot (ps)
    refresh_interval, refresh_time : tREFI (0: none) and tRFC (ps)
    """

    def __init__(self, clock: RefClock, length: int, refresh_interval: int, refresh_time: int) -> None:
        self.clock, self.length = clock, length
        self.refresh_interval, self.refresh_time = refresh_interval, refresh_time
        self.base = 0
        self.taken: set[int] = set()

    def take(self, slot: int) -> int:
        """Takes the first free slot at or after one."""
        slot = max(slot, self.base)
        while True:
            if slot >= self.base + SLOTS:
                self.forget_the_past()
                if slot >= self.base + SLOTS:
                    self.base = slot // WORD * WORD - SLOTS + WORD
                slot = max(slot, self.base)
            if slot not in self.taken and not self.refreshes(slot):
                break
            slot += 1
        self.taken.add(slot)
        return slot

    def forget_the_past(self) -> None:
        """Slots before now are no longer looked at."""
        self.base = max(self.base, self.clock.now // self.length // WORD * WORD)

    def refreshes(self, slot: int) -> bool:
        """Whether a refresh takes a slot."""
        if not self.refresh_interval:
            return False
        last = (slot + 1) * self.length // self.refresh_interval
        return any(self._begin(k) <= slot < self._end(k) for k in (last - 1, last) if k > 0)

    def _begin(self, k: int) -> int:
        return k * self.refresh_interval // self.length

    def _end(self, k: int) -> int:
        return (k * self.refresh_interval + self.refresh_time) // self.length

    def holds(self, slot: int) -> bool:
        """Whether a slot is one of those that can be taken now."""
        return self.base <= slot < self.base + SLOTS
