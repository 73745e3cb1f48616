"""Device memory: READ and WRITE of docs/reference/replay-rules.md."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from fractions import Fraction
from typing import Protocol

from tests.reference.replay.dram.banks import RefDramTiming
from tests.reference.replay.dram.channel import RefBankedChannel
from tests.reference.replay.memory.address_map import RefLocation
from tests.reference.replay.memory.histograms import RefQueueWaits
from tests.reference.replay.numbers import FINE, SECTOR_BYTES, RefNumbers, sector_time
from tests.reference.replay.primitives.ports import RefClock, RefPort

#: What is moved, as lists of the channels' name it, and the counter of all channels.
KINDS = {
    "demand": "demand",
    "overfetch": "overfetch",
    "read_modify_write": "read_modify_write",
    "writeback": "writeback",
    "metadata_read": "metadata",
    "metadata_write": "metadata",
}


class RefChannelProtocol(Protocol):
    """A pseudo-channel, and the bytes that it has moved."""

    bytes: int
    queued: int

    def read(self, location: RefLocation, count: int, t: int) -> int:
        """Return the end of the data of a read that reaches the channel at `t` (ps)."""

    def write(self, location: RefLocation, count: int, t: int, before: int) -> int:
        """Return when the channel accepts bursts that leave the L2 at `t`; the way takes `before` (ps)."""


class RefSimpleChannel:
    """A pseudo-channel of the `simple` model, with a bandwidth and a latency.

    Parameters
    ----------
    timing : of the machine
    """

    queued = 0

    def __init__(self, timing: RefDramTiming) -> None:
        self.port, self.timing = RefPort(), timing
        self.bytes = 0

    def _pass(self, count: int, t: int) -> int:
        self.bytes += SECTOR_BYTES * count
        return self.port.request(t, count * self.timing.burst * FINE)

    def read(self, _: RefLocation, count: int, t: int) -> int:
        """Return the end of the data of a read that reaches the channel at `t` (ps)."""
        timing = self.timing
        return self._pass(count, t) + timing.trcd + timing.tcl + count * timing.burst

    def write(self, _: RefLocation, count: int, t: int, before: int) -> int:
        """Return when the channel accepts bursts that leave the L2 at `t`; the way takes `before` (ps)."""
        return self._pass(count, t + before) - before


class RefDram:
    """All pseudo-channels.

    Parameters
    ----------
    numbers : of the machine
    clock : the run's
    counts, waits : what is counted
    """

    def __init__(self, numbers: RefNumbers, clock: RefClock, counts: Counter[str], waits: RefQueueWaits) -> None:
        machine, self.counts, self.waits = numbers.machine, counts, waits
        self.timing = timing = timing_of(numbers)
        around = machine.ps(machine.dram.load_to_use) - numbers.l2_hit - timing.trcd - timing.tcl - timing.burst
        self.before, self.after = around // 2, around - around // 2
        self.idle = around + timing.tcl + timing.burst
        self.burst_step = timing.ccd * timing.burst
        if machine.dram.model == "simple":
            self.idle += timing.trcd
            self.burst_step = timing.burst
        self.channels: list[RefChannelProtocol] = []
        self.by_kind = {kind: [0] * numbers.pseudo_channels for kind in KINDS}
        for channel in range(numbers.pseudo_channels):
            if machine.dram.model == "simple":
                self.channels.append(RefSimpleChannel(timing))
            else:
                offset = channel * timing.trefi // numbers.pseudo_channels if timing.staggered else 0
                self.channels.append(RefBankedChannel(machine.dram, clock, timing, counts, offset))

    def read(self, location: RefLocation, count: int, t: int) -> int:
        """Return when `count` bursts requested at `t` are back at the L2 (ps); no bursts take no time."""
        if not count:
            return t
        back = self.channels[location.channel].read(location, count, t + self.before) + self.after
        self.waits.dram_read.add(back - t - self.idle - (count - 1) * self.burst_step)
        return back

    def begins_after(self, location: RefLocation, t: int, after: int) -> bool:
        """Return whether a burst requested at `t` would begin at `after` or later; reserve nothing."""
        trial = deepcopy(self.channels[location.channel])
        back = trial.read(location, 1, t + self.before) + self.after
        return back - self.idle >= after

    def write(self, location: RefLocation, count: int, t: int) -> int:
        """Return when the channel accepts `count` bursts that leave the L2 at `t` (ps)."""
        taken = self.channels[location.channel].write(location, count, t, self.before)
        if count:
            self.waits.dram_write.add(taken - t)
        return taken

    def count(self, kind: str, location: RefLocation, sectors: int) -> None:
        """Count sectors of a kind that are moved or queued."""
        self.by_kind[kind][location.channel] += SECTOR_BYTES * sectors
        self.counts[f"device.{KINDS[kind]}_bytes"] += SECTOR_BYTES * sectors

    @property
    def bytes(self) -> list[int]:
        """Return the bytes moved by each pseudo-channel."""
        return [channel.bytes for channel in self.channels]

    @property
    def queued_bytes(self) -> int:
        """Return the bytes of accepted writes that are still queued."""
        return SECTOR_BYTES * sum(channel.queued for channel in self.channels)


def timing_of(numbers: RefNumbers) -> RefDramTiming:
    """Return the machine's timing in ps."""
    machine, keys = numbers.machine, numbers.machine.dram.timing
    burst = sector_time(machine.bytes_per_s(machine.dram.pseudo_channel_bandwidth))
    return RefDramTiming(
        burst=burst,
        trcd=machine.ps(keys.tRCD),
        trp=machine.ps(keys.tRP),
        tcl=machine.ps(keys.tCL),
        tcwl=machine.ps(keys.tCWL),
        tras=machine.ps(keys.tRAS),
        twr=machine.ps(keys.tWR),
        twtr=machine.ps(keys.tWTR),
        trtw=machine.ps(keys.tRTW),
        trtp=machine.ps(keys.tRTP),
        trfc=machine.ps(keys.tRFC),
        trefi=machine.ps(keys.tREFI),
        trfcsb=machine.ps(keys.tRFCSB),
        single_banks=machine.dram.refresh == "single_bank",
        staggered=machine.dram.refresh == "staggered",
        banks=machine.dram.banks,
        interval=max(machine.ps(keys.tRRD_S), machine.ps(keys.tFAW) // 4),
        ccd=max(1, round(Fraction(machine.ps(keys.tCCD_L), burst))),
    )
