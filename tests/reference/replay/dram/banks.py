"""Banks of device memory: open rows, and rows that a request can still join."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.reference.replay.primitives.reservation_table import RefReservationTable

ROWS_LEFT = 3


@dataclass(frozen=True)
class RefDramTiming:
    """The `dram.timing` of the machine in ps, and the length of a burst; `ccd` is in bursts."""

    burst: int
    trcd: int
    trp: int
    tcl: int
    tcwl: int
    tras: int
    twr: int
    twtr: int
    trtw: int
    trtp: int
    trfc: int
    trefi: int
    trfcsb: int
    single_banks: bool
    staggered: bool
    banks: int
    interval: int
    ccd: int


class RefActivationWindow:
    """Activations of a pseudo-channel; each follows the one before by at least `interval`.

    Parameters
    ----------
    interval : max(tRRD, tFAW / 4) (ps)
    reservations : with a slot for each; None where bursts are no shorter
    """

    def __init__(self, interval: int, reservations: RefReservationTable | None) -> None:
        self.interval, self.reservations = interval, reservations
        self.latest_slot, self.latest = -2, 0

    def activate(self, t: int) -> int:
        """Return the time of an activation that is requested at `t` (ps)."""
        if self.reservations is None:
            return t
        slot = self.reservations.take(t // self.interval)
        at = max(t, slot * self.interval)
        if slot - 1 == self.latest_slot:
            at = max(at, self.latest + self.interval)
        if slot > self.latest_slot:
            self.latest_slot, self.latest = slot, at
        return at


class RefClosedRow(NamedTuple):
    """A row, and the time at which its bank closes it."""

    row: int | None
    at: int


class RefRowAccess(NamedTuple):
    """The earliest time of a column command (ps), and the row's state: `hit`, `joined` or `miss`."""

    at: int
    word: str


@dataclass
class RefBank:
    """A bank of a pseudo-channel; times are ps.

    Parameters
    ----------
    timing : of the machine
    activations : of its pseudo-channel
    number : in its pseudo-channel
    channel_offset : from the refreshes of the first pseudo-channel to those of the bank's (ps)
    """

    timing: RefDramTiming
    activations: RefActivationWindow
    number: int
    channel_offset: int
    row: int | None = None
    col: int = 0
    ready: int = 0
    left: list[RefClosedRow] = field(default_factory=lambda: [RefClosedRow(None, 0)] * (ROWS_LEFT + 1))

    @property
    def _refresh_offset(self) -> int:
        """Return the start of the bank's first refresh (ps)."""
        if self.timing.single_banks:
            return self.number * self.timing.trefi // self.timing.banks
        return self.channel_offset

    def open(self, row: int, t: int, earliest: int) -> RefRowAccess:
        """A request for a row reaches the channel at `t`; it is activated no earlier than at `earliest`."""
        timing = self.timing
        began = t - (t - self._refresh_offset) % timing.trefi if timing.trefi else 0
        if self.left[0].at + timing.trp < began:
            self.row, self.ready = None, began + (timing.trfcsb if timing.single_banks else timing.trfc)
        if self.row == row:
            return RefRowAccess(max(t, self.col), "hit")
        newest = next((i for i, other in enumerate(self.left[:ROWS_LEFT]) if other.row == row), None)
        if newest is not None and self.left[newest].at > t:
            return RefRowAccess(max(t, self.left[newest + 1].at + timing.trp + timing.trcd), "joined")
        at = max(t, self.ready)
        if self.row is not None:
            at += timing.trp
        at = self.activations.activate(max(at, earliest))
        self.left = [RefClosedRow(self.row, at - timing.trp), *self.left[:-1]]
        self.row = row
        self.col, self.ready = at + timing.trcd, at + timing.tras
        return RefRowAccess(self.col, "miss")
