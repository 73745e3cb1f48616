"""The reference model of the bus reservations in `dram`: the slots taken as a set."""

from __future__ import annotations

WORDS, WORD_SLOTS = 256, 64


class RefBusReservations:
    """The data bus of one pseudo-channel in slots of a burst, of which 256 words of 64 are kept from the oldest on.

    Parameters
    ----------
    burst_ps : length of a slot
    ccd_slots : slots from a burst to the next one of a request
    """

    def __init__(self, burst_ps: int, ccd_slots: int) -> None:
        self.burst_ps, self.ccd_slots = burst_ps, ccd_slots
        self.taken: set[int] = set()
        self.oldest_word = 0

    def reserve(self, now_ps: int, slot: int, bursts: int) -> tuple[int, int]:
        """Takes slots for a request's bursts, at or after `slot`, itself no earlier than `now_ps`; first and last."""
        self.oldest_word = max(self.oldest_word, now_ps // self.burst_ps // WORD_SLOTS)
        first = last = self._take(slot)
        for _ in range(1, bursts):
            last = self._take(last + self.ccd_slots)
        return first, last

    def _take(self, slot: int) -> int:
        slot = max(slot, self.oldest_word * WORD_SLOTS)
        while slot in self.taken:
            slot += 1
        self.taken.add(slot)
        self.oldest_word = max(self.oldest_word, slot // WORD_SLOTS - WORDS + 1)
        return slot
