"""Counters of the L1s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.replay.component.counted import Counted, PartCounters, busy_fraction, utilization, waits
from buddysim.replay.primitives.kinds import Queue


def _port_busy(c: Mapping[str, Any]) -> float:
    cycles = c["line_accesses"] + c["l1_conflict_cycles"]
    return busy_fraction(c, cycles * c["numbers"]["l1_line_ps"], c["numbers"]["sms"])


COUNTERS: PartCounters = {
    "L1": {
        "l1.sector_accesses": Counted(
            "sectors: Sectors that loads look up in an L1; loads that bypass the L1 do not count.", "l1_accesses"
        ),
        "l1.sector_hits": Counted(
            "sectors: L1 sector lookups that hit a valid sector; MSHR merges do not count.", "l1_hits"
        ),
        "l1.sector_mshr_merges": Counted(
            "sectors: L1 sector lookups that join a miss in flight and send no request.", "l1_mshr_merges"
        ),
        "l1.sector_misses": Counted(
            "sectors: L1 sector lookups that neither hit nor join a miss in flight: the L1 requests them.",
            lambda c: c["l1_accesses"] - c["l1_hits"] - c["l1_mshr_merges"],
        ),
        "l1.line_accesses": Counted("lines: L1 line lookups, one for each line of a load.", "l1_lines"),
        "l1.line_hits": Counted(
            "lines: L1 line lookups that find the line's tag, whether or not the sectors are valid.", "l1_line_hits"
        ),
    },
    "Latency": {
        "latency.l1_miss_mean_ps": Counted(
            "ps: Mean time from an L1 miss's request to its reply, queues included, rounded down.",
            lambda c: c["load_ps"] // c["loads_missed"] if c["loads_missed"] else 0,
        ),
        "latency.l1_miss_histogram": Counted(
            "loads: Histogram of L1 miss times: element b counts 2^b to 2^(b+1) - 1 ps.", "load_histogram"
        ),
    },
    "Queueing": {
        "queueing.l1_port_histogram": waits(
            Queue.L1_PORT, "lines", "lines from their instruction's issue until their L1 accepts them"
        ),
        "queueing.l1_mshr_histogram": waits(Queue.L1_MSHR, "lines", "load misses for an MSHR of their L1"),
        "queueing.l1_store_histogram": waits(
            Queue.L1_STORE, "lines", "stores until their L1 has a free entry for stores in flight"
        ),
    },
    "Utilization": {
        "utilization.l1": utilization("the L1s, bank-conflict cycles included", _port_busy),
    },
}

LAWS = (
    "`l1.sector_accesses` = `l1.sector_hits` + `l1.sector_mshr_merges` + `l1.sector_misses`",
    "`load_sectors` = `l1.sector_hits` + `l1.sector_mshr_merges` + `l2.read_sectors`",
)
