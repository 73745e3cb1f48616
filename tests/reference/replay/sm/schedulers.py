"""Warp schedulers: the choice of the next warp, and the time of its issue."""

from __future__ import annotations

from collections import Counter

from tests.reference.replay.numbers import RefNumbers
from tests.reference.replay.sm.warps import RefWarp


class RefScheduler:
    """A scheduler and its warps, the oldest first.

    Parameters
    ----------
    numbers : of the machine
    counts : what is counted
    """

    def __init__(self, numbers: RefNumbers, counts: Counter[str]) -> None:
        self.numbers, self.counts = numbers, counts
        self.warps: list[RefWarp] = []
        self.next_issue = self.slots_free = 0
        self.last_issuer: RefWarp | None = None

    @property
    def next_slot(self) -> int | None:
        """Return when the scheduler can issue next (ps); None if no warp can issue."""
        ready = [warp.ready for warp in self.warps if warp.ready is not None]
        return max(min(ready), self.next_issue) if ready else None

    def choose(self, now: int) -> RefWarp | None:
        """Return the warp whose instruction or end issues at `now`; None if its issue slots or its code take longer."""
        warp = self._candidate(now)
        if warp.slots and not warp.slots_taken:
            until = warp.wait_for_code(now)
            if until > now:
                warp.ready = until
                return None
            cycle = self.numbers.cycle
            waits = self.slots_free > now - warp.chain
            finish = max(self.slots_free, now - warp.chain) + warp.slots * cycle
            self.slots_free = finish + warp.unit_busy_slots * cycle
            if waits and self.numbers.machine.sm.stall_on_busy_unit:
                finish = self.slots_free
            self.counts["warp_instructions"] += warp.slots
            self.counts["unit_busy_slots"] += warp.unit_busy_slots
            warp.slots_taken = True
            if finish - cycle > now:
                warp.ready = finish - cycle
                return None
        return warp

    def _candidate(self, now: int) -> RefWarp:
        able = [warp.ready is not None and warp.ready <= now for warp in self.warps]
        last = self.warps.index(self.last_issuer) if self.last_issuer else -1
        order: list[int]
        if self.numbers.machine.sm.policy == "gto":
            order = [*([last] if last >= 0 else []), *range(len(self.warps))]
        else:
            order = [*range(last + 1, len(self.warps)), *range(last + 1)]
        return next(self.warps[i] for i in order if able[i])

    def issued(self, warp: RefWarp, now: int, taken: int) -> None:
        """Note that the warp's memory instruction issued, and that the L1 accepted it at `taken`."""
        self.next_issue = max(now + self.numbers.cycle, taken)
        self.last_issuer = warp

    def ended(self, warp: RefWarp) -> None:
        """Remove a warp that has ended."""
        self.warps = [other for other in self.warps if other is not warp]
        if self.last_issuer is warp:
            self.last_issuer = None
