"""The link: a port for each direction, with the packets of a protocol."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import ceil

from tests.reference.replay.memory.histograms import RefQueueWaits
from tests.reference.replay.numbers import FINE, PS_PER_S, SECTOR_BYTES, RefNumbers
from tests.reference.replay.primitives.ports import RefClock, RefPort

FLIT_BYTES = 16


class RefLink:
    """The host link, with a port for each direction.

    Parameters
    ----------
    numbers : of the machine
    clock : the run's
    counts, waits : what is counted
    """

    def __init__(self, numbers: RefNumbers, clock: RefClock, counts: Counter[str], waits: RefQueueWaits) -> None:
        machine = numbers.machine
        self.keys, self.clock, self.counts = machine.link, clock, counts
        self.byte_cost = Fraction(PS_PER_S * FINE, machine.bytes_per_s(machine.link.bandwidth))
        self.write_cost = self.byte_cost
        if machine.link.write_bandwidth.amount:
            self.write_cost = Fraction(PS_PER_S * FINE, machine.bytes_per_s(machine.link.write_bandwidth))
        self.inwards, self.outwards = RefPort(waits.link_read), RefPort(waits.link_write)
        first = ceil(self._total(SECTOR_BYTES) * self.byte_cost) // FINE
        self.read_ps = max(0, machine.ps(self.keys.load_to_use) - numbers.l2_hit - first)

    def _packets(self, payload: int) -> int:
        return ceil(Fraction(payload, self.keys.max_payload))

    def _total(self, payload: int) -> int:
        if self.keys.protocol == "nvlink":
            return (self._packets(payload) + ceil(Fraction(payload, FLIT_BYTES))) * FLIT_BYTES
        return payload + self._packets(payload) * self.keys.header_size

    def _against(self, payload: int) -> int:
        """Bytes in the other direction: a read's requests, a write's acknowledgements."""
        return self._packets(payload) * FLIT_BYTES if self.keys.protocol == "nvlink" else 0

    def read(self, payload: int, t: int) -> int:
        """Return when a transfer requested at `t` has arrived (ps)."""
        total, requests = self._total(payload), self._against(payload)
        requested = t
        if requests:
            self.counts["link.write_bytes"] += requests
            cost = ceil(requests * self.write_cost)
            t = self.outwards.request(t, cost)
            requested = t + cost // FINE
        self.counts["link.read_bytes"] += total
        cost = ceil(total * self.byte_cost)
        return max(self.inwards.request(t, cost) + cost // FINE, requested) + self.read_ps

    def write(self, payload: int, t: int) -> int:
        """Return when the link has taken a transfer (ps)."""
        total, acknowledgements = self._total(payload), self._against(payload)
        self.counts["link.write_bytes"] += total
        cost = ceil(total * self.write_cost)
        taken = self.outwards.request(t, cost) + cost // FINE
        if acknowledgements:
            self.counts["link.read_bytes"] += acknowledgements
            self.inwards.request(taken, ceil(acknowledgements * self.byte_cost))
        return taken
