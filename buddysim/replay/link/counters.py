"""Counters of the link."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.replay.component.counted import Counted, PartCounters, busy_fraction, utilization, waits
from buddysim.replay.primitives.kinds import Queue, Traffic


def _busy(c: Mapping[str, Any], carried: int, bytes_per_s: int) -> float:
    """Return the fraction of the time that a direction is busy: at most 1, as write-backs may pass after the end."""
    return min(1.0, busy_fraction(c, carried * 10**12 / bytes_per_s))


COUNTERS: PartCounters = {
    "Link": {
        "link.read_bytes": Counted(
            "B: Bytes that the link carries to the GPU, packet headers included.", "link_read_total_bytes"
        ),
        "link.write_bytes": Counted(
            "B: Bytes that the link carries from the GPU, packet headers included.", "link_write_total_bytes"
        ),
        "link.demand_bytes": Counted(
            "B: Payload of fills over the link, at most as many sectors as the request misses.",
            lambda c: c["link_read"][Traffic.DEMAND],
        ),
        "link.overfetch_bytes": Counted(
            "B: Payload of fills over the link beyond the missing sectors.", lambda c: c["link_read"][Traffic.OVERFETCH]
        ),
        "link.read_modify_write_bytes": Counted(
            "B: Sectors read over the link for write-backs of entries that the L2 holds only in part.",
            lambda c: c["link_read"][Traffic.READ_MODIFY_WRITE],
        ),
        "link.writeback_bytes": Counted(
            "B: Payload of write-backs over the link.", lambda c: c["link_write"][Traffic.WRITEBACK]
        ),
    },
    "Queueing": {
        "queueing.link_read_histogram": waits(Queue.LINK_READ, "transfers", "transfers to the GPU for the link"),
        "queueing.link_write_histogram": waits(Queue.LINK_WRITE, "transfers", "transfers from the GPU for the link"),
    },
    "Utilization": {
        "utilization.link_read": utilization(
            "the link to the GPU",
            lambda c: _busy(c, c["link_read_total_bytes"], c["numbers"]["link_bytes_per_s"]),
        ),
        "utilization.link_write": utilization(
            "the link from the GPU",
            lambda c: _busy(c, c["link_write_total_bytes"], c["numbers"]["link_write_bytes_per_s"]),
        ),
    },
}

LAWS = (
    "`link.demand_bytes` + `link.overfetch_bytes` + `link.read_modify_write_bytes` <= `link.read_bytes`",
    "`link.writeback_bytes` <= `link.write_bytes`",
)
