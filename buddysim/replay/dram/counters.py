"""Counters of device memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.compress import SECTOR_BYTES
from buddysim.replay.component.counted import Counted, PartCounters, busy_fraction, utilization, waits
from buddysim.replay.primitives.kinds import Queue, Traffic

#: Kinds of data that the L2 reads.
READS = (Traffic.DEMAND, Traffic.OVERFETCH, Traffic.READ_MODIFY_WRITE)


def bytes_by_channel(c: Mapping[str, Any], kind: int) -> list[int]:
    """Return the bytes of a kind of traffic that each pseudo-channel carried."""
    return [SECTOR_BYTES * moved[kind] for moved in c["dram_moved"]]


def _moved(text: str, *kinds: Traffic) -> Counted:
    """The bytes of some kinds of traffic."""
    return Counted(f"B: {text}", lambda c: SECTOR_BYTES * sum(c["device"][kind] for kind in kinds))


def _by_channel(text: str, kind: Traffic) -> Counted:
    """The bytes of a kind of traffic that each pseudo-channel carried."""
    return Counted(f"B: {text}: a list with a value for each pseudo-channel.", lambda c: bytes_by_channel(c, kind))


def _burst_ps(c: Mapping[str, Any]) -> int:
    return int(c["numbers"]["dram_burst_ps"])


COUNTERS: PartCounters = {
    "Device memory": {
        "device.read_bytes": _moved(
            "Data that the L2 reads from device memory; what a scheme keeps next to them does not count.", *READS
        ),
        "device.write_bytes": _moved(
            "Data that the L2 writes to device memory; what a scheme keeps next to them does not count.",
            Traffic.WRITEBACK,
        ),
        "device.demand_bytes": _moved(
            "Device data that fills fetch, at most as many sectors as the request misses.", Traffic.DEMAND
        ),
        "device.overfetch_bytes": _moved(
            "Device data that fills fetch beyond the missing sectors, misspeculated ones included.", Traffic.OVERFETCH
        ),
        "device.read_modify_write_bytes": _moved(
            "Device data read for write-backs of entries that the L2 holds only in part.", Traffic.READ_MODIFY_WRITE
        ),
        "device.writeback_bytes": _moved(
            "Device data that write-backs write: compressed entries in full, others their dirty sectors.",
            Traffic.WRITEBACK,
        ),
        "device.bus_bytes": Counted(
            "B: Bytes that the channels of device memory carry, in bursts of 32 B.",
            lambda c: SECTOR_BYTES * sum(c["dram_bursts"]),
        ),
        "device.channel_bytes": Counted(
            "B: Bytes that the channels carry: a list with a value for each pseudo-channel.",
            lambda c: [SECTOR_BYTES * bursts for bursts in c["dram_bursts"]],
        ),
        "device.channel_demand_bytes": _by_channel("Demand data of fills", Traffic.DEMAND),
        "device.channel_overfetch_bytes": _by_channel("Over-fetched data of fills", Traffic.OVERFETCH),
        "device.channel_read_modify_write_bytes": _by_channel(
            "Data read for partial write-backs", Traffic.READ_MODIFY_WRITE
        ),
        "device.channel_writeback_bytes": _by_channel("Data of write-backs, queued writes included", Traffic.WRITEBACK),
        "device.queued_write_bytes": Counted(
            "B: Writes that the channels' write queues hold at the end of the run.",
            lambda c: SECTOR_BYTES * sum(c["dram_queued_bursts"]),
        ),
        "device.row_hits": Counted(
            'accesses: DRAM bank accesses that find their row open; 0 with `dram.model = "simple"`.',
            lambda c: sum(c["dram_row_hits"]),
        ),
        "device.row_misses": Counted(
            'accesses: DRAM bank accesses that open their row; 0 with `dram.model = "simple"`.',
            lambda c: sum(c["dram_row_misses"]),
        ),
    },
    "Queueing": {
        "queueing.dram_read_histogram": waits(
            Queue.DRAM_READ, "accesses", "reads of device memory for bank, row, bus and refresh"
        ),
        "queueing.dram_write_histogram": waits(
            Queue.DRAM_WRITE, "accesses", "writes until their channel's write queue accepts them"
        ),
    },
    "Utilization": {
        "utilization.dram_channels": utilization(
            "the data buses of device memory",
            lambda c: busy_fraction(c, _burst_ps(c) * sum(c["dram_bursts"]), c["numbers"]["dram_pseudo"]),
        ),
        "utilization.dram_busiest_channel": utilization(
            "the busiest pseudo-channel of device memory",
            lambda c: busy_fraction(c, _burst_ps(c) * max(c["dram_bursts"])),
        ),
    },
}

LAWS = (
    "`device.read_bytes` = `device.demand_bytes` + `device.overfetch_bytes` + `device.read_modify_write_bytes`",
    "`device.write_bytes` = `device.writeback_bytes`",
)
