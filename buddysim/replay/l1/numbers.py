"""The L1 of a machine in the engine's units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.compress import ENTRY_BYTES
from buddysim.replay.port_costs import core_cycle_ps

if TYPE_CHECKING:
    from buddysim.machine import Machine

#: Lines that may wait in front of an L1 before warps stop issuing to it; assumed: one fully divergent instruction.
L1_QUEUE_LINES = 32


def l1_numbers(m: Machine) -> dict[str, object]:
    """Return the engine's numbers of the L1s, by name."""
    line_ps = max(1, core_cycle_ps(m) // m.l1.lines_per_cycle)
    return {
        "l1_enabled": m.l1.enabled,
        "l1_sets": m.l1.size // (m.l1.ways * ENTRY_BYTES),
        "l1_ways": m.l1.ways,
        "l1_hit_ps": m.ps(m.l1.load_to_use),
        "l1_line_ps": line_ps,
        "l1_max_mshr_merges": m.l1.max_mshr_merges,
        "l1_mshrs": m.l1.mshrs,
        "l1_queue_ps": L1_QUEUE_LINES * line_ps,
    }
