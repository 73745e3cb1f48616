"""Counters of the L2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.replay.component.counted import Counted, PartCounters, busy_fraction, utilization, waits
from buddysim.replay.port_costs import COST_PER_PS
from buddysim.replay.primitives.kinds import Queue


def _ports_busy(c: Mapping[str, Any]) -> float:
    sectors = c["l2_reads"] + c["l2_writes"]
    return busy_fraction(c, sectors * c["numbers"]["slice_cost"] / COST_PER_PS, c["numbers"]["slices"])


COUNTERS: PartCounters = {
    "L2": {
        "l2.sector_accesses": Counted(
            "sectors: Sectors that requests look up in the L2, reads and writes together.",
            lambda c: c["l2_reads"] + c["l2_writes"],
        ),
        "l2.sector_hits": Counted(
            "sectors: L2 sector lookups that hit, reads and writes together; MSHR merges do not count.",
            lambda c: c["l2_read_hits"] + c["l2_write_hits"],
        ),
        "l2.sector_mshr_merges": Counted(
            "sectors: L2 sectors read that join a miss in flight and cause no fill.", "l2_read_mshr_merges"
        ),
        "l2.read_sectors": Counted(
            "sectors: L2 sectors that L1 misses, bypassing loads and atomics request.", "l2_reads"
        ),
        "l2.read_sector_hits": Counted(
            "sectors: L2 sectors read that hit a valid sector; MSHR merges do not count.", "l2_read_hits"
        ),
        "l2.write_sectors": Counted("sectors: L2 sectors that stores write.", "l2_writes"),
        "l2.write_sector_hits": Counted(
            "sectors: L2 sectors written that were valid or had been written before.", "l2_write_hits"
        ),
        "l2.line_accesses": Counted("lines: L2 line lookups, one for each line of a request.", "l2_lines"),
        "l2.line_hits": Counted(
            "lines: L2 line lookups that find the line's tag, whether or not the sectors are valid.", "l2_line_hits"
        ),
        "l2.read_sector_misses": Counted(
            "sectors: L2 sectors read that are neither valid nor in flight, so memory must supply them.",
            "l2_read_misses",
        ),
        "l2.fill_sectors": Counted(
            "sectors: Sectors that fills make valid: the missing ones, and the rest of an entry fetched in full.",
            "fill_sectors",
        ),
        "l2.fills": Counted("fills: Requests that miss sectors in the L2 and fetch them from memory.", "fills"),
        "l2.writebacks": Counted("write-backs: Lines that the L2 evicts with dirty sectors.", "writebacks"),
        "l2.writeback_sectors": Counted("sectors: Dirty sectors of the lines that the L2 evicts.", "writeback_sectors"),
        "l2.sectors_made_dirty": Counted(
            "sectors: Clean or absent sectors that a store or atomic makes dirty.", "sectors_made_dirty"
        ),
        "l2.dirty_sectors_overwritten": Counted(
            "sectors: Dirty sectors dropped because a memcpy or memset overwrites them in memory.",
            "dirty_sectors_overwritten",
        ),
        "l2.dirty_sectors_freed": Counted(
            "sectors: Dirty sectors dropped because the program frees their allocation.", "dirty_sectors_freed"
        ),
        "l2.dirty_sectors_at_end": Counted(
            "sectors: Dirty sectors in the L2 after the last event of the trace.", "dirty_sectors_at_end"
        ),
    },
    "Latency": {
        "latency.l2_miss_histogram": Counted(
            "fills: Histogram of the times of fills below the L2: element b counts 2^b to 2^(b+1) - 1 ps.",
            "memory_histogram",
        ),
    },
    "Queueing": {
        "queueing.slice_port_histogram": waits(Queue.SLICE_PORT, "requests", "requests for the port of their L2 slice"),
        "queueing.l2_mshr_histogram": waits(Queue.L2_MSHR, "fills", "fills for an MSHR of their L2 slice"),
    },
    "Utilization": {
        "utilization.l2_slices": utilization("the ports of the L2 slices", _ports_busy),
    },
}

LAWS = (
    "`l2.sector_accesses` = `l2.read_sectors` + `l2.write_sectors`",
    "`l2.sector_hits` = `l2.read_sector_hits` + `l2.write_sector_hits`",
    "`l2.read_sectors` = `l2.read_sector_hits` + `l2.sector_mshr_merges` + `l2.read_sector_misses`",
    "`l2.sectors_made_dirty` = `l2.writeback_sectors` + `l2.dirty_sectors_overwritten` + `l2.dirty_sectors_freed`"
    " + `l2.dirty_sectors_at_end`",
)
