"""Counters of the SMs: time and instructions."""

from __future__ import annotations

from buddysim.replay.component.counted import Counted, PartCounters, busy_fraction, utilization

COUNTERS: PartCounters = {
    "Time and instructions": {
        "time_ps": Counted(
            "ps: Simulated time from the start of the first kernel to the end of the last, with launch latencies.",
            "now_ps",
        ),
        "cycles": Counted(
            "core cycles: Simulated time in whole cycles of the machine's core clock.",
            lambda c: c["now_ps"] // c["numbers"]["cycle_ps"],
        ),
        "warp_instructions": Counted(
            "instructions: Instructions that warps issued, memory instructions and compute gaps alike.",
            "warp_instructions",
        ),
        "memory_instructions": Counted(
            "instructions: Loads, stores and atomics that warps issued; barriers do not count.", "memory_instructions"
        ),
        "line_accesses": Counted(
            "lines: Lines that loads, stores and atomics access, each once per instruction.", "line_accesses"
        ),
        "load_sectors": Counted("sectors: Sectors that loads and atomics request.", "load_sectors"),
        "store_sectors": Counted("sectors: Sectors that stores write.", "store_sectors"),
    },
    "Utilization": {
        "utilization.issue_slots": utilization(
            "the schedulers' issue slots, those blocked by a busy execution unit included",
            lambda c: busy_fraction(c, c["issue_busy_ps"], c["numbers"]["sms"] * c["numbers"]["schedulers"]),
        ),
    },
}
