"""Counters of device memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.compress import SECTOR_BYTES
from buddysim.replay.component.counted import Counted, PartCounters, busy_fraction, utilization, waits
from buddysim.replay.engine.kinds import Queue, Traffic

#: Kinds of data that the L2 reads.
READS = (Traffic.DEMAND, Traffic.OVERFETCH, Traffic.READ_MODIFY_WRITE)


def bytes_by_channel(c: Mapping[str, Any], kind: int) -> list[int]:
    """Return the bytes of a kind of traffic that each pseudo-channel carried."""
    return [SECTOR_BYTES * moved[kind] for moved in c["dram_moved"]]


def _burst_ps(c: Mapping[str, Any]) -> int:
    return int(c["numbers"]["dram_burst_ps"])


COUNTERS: PartCounters = {
    "Device memory": {
        "device.read_bytes": Counted(
            "B",
            "Data that the L2 reads from device memory; what a scheme keeps next to them does not count.",
            lambda c: SECTOR_BYTES * sum(c["device"][kind] for kind in READS),
        ),
        "device.write_bytes": Counted(
            "B",
            "Data that the L2 writes to device memory; what a scheme keeps next to them does not count.",
            lambda c: SECTOR_BYTES * c["device"][Traffic.WRITEBACK],
        ),
        "device.demand_bytes": Counted(
            "B",
            "Device data that fills fetch, at most as many sectors as the request misses.",
            lambda c: SECTOR_BYTES * c["device"][Traffic.DEMAND],
        ),
        "device.overfetch_bytes": Counted(
            "B",
            "Device data that fills fetch beyond the missing sectors, misspeculated ones included.",
            lambda c: SECTOR_BYTES * c["device"][Traffic.OVERFETCH],
        ),
        "device.read_modify_write_bytes": Counted(
            "B",
            "Device data read for write-backs of entries that the L2 holds only in part.",
            lambda c: SECTOR_BYTES * c["device"][Traffic.READ_MODIFY_WRITE],
        ),
        "device.writeback_bytes": Counted(
            "B",
            "Device data that write-backs write: compressed entries in full, others their dirty sectors.",
            lambda c: SECTOR_BYTES * c["device"][Traffic.WRITEBACK],
        ),
        "device.bus_bytes": Counted(
            "B",
            "Bytes that the channels of device memory carry, in bursts of 32 B.",
            lambda c: SECTOR_BYTES * sum(c["dram_bursts"]),
        ),
        "device.channel_bytes": Counted(
            "B",
            "Bytes that the channels carry: a list with a value for each pseudo-channel.",
            lambda c: [SECTOR_BYTES * bursts for bursts in c["dram_bursts"]],
        ),
        "device.channel_demand_bytes": Counted(
            "B",
            "Demand data of fills: a list with a value for each pseudo-channel.",
            lambda c: bytes_by_channel(c, Traffic.DEMAND),
        ),
        "device.channel_overfetch_bytes": Counted(
            "B",
            "Over-fetched data of fills: a list with a value for each pseudo-channel.",
            lambda c: bytes_by_channel(c, Traffic.OVERFETCH),
        ),
        "device.channel_read_modify_write_bytes": Counted(
            "B",
            "Data read for partial write-backs: a list with a value for each pseudo-channel.",
            lambda c: bytes_by_channel(c, Traffic.READ_MODIFY_WRITE),
        ),
        "device.channel_writeback_bytes": Counted(
            "B",
            "Data of write-backs, queued writes included: a list with a value for each pseudo-channel.",
            lambda c: bytes_by_channel(c, Traffic.WRITEBACK),
        ),
        "device.queued_write_bytes": Counted(
            "B",
            "Writes that the channels' write queues hold at the end of the run.",
            lambda c: SECTOR_BYTES * sum(c["dram_queued_bursts"]),
        ),
        "device.row_hits": Counted(
            "accesses",
            'DRAM bank accesses that find their row open; 0 with `dram.model = "simple"`.',
            lambda c: sum(c["dram_row_hits"]),
        ),
        "device.row_misses": Counted(
            "accesses",
            'DRAM bank accesses that open their row; 0 with `dram.model = "simple"`.',
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
