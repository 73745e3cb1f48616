"""The SMs of a machine, and launches on them, in the engine's units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.replay.port_costs import core_cycle_ps

if TYPE_CHECKING:
    from buddysim.machine import Machine


def sm_numbers(m: Machine) -> dict[str, object]:
    """Return the engine's numbers of the SMs, by name."""
    return {
        "sms": m.sm.count,
        "schedulers": m.sm.schedulers,
        "blocking_atomics": m.sm.blocking_atomics,
        "split_conflicting_atomics": m.sm.split_conflicting_atomics,
        "stall_on_busy_unit": m.sm.stall_on_busy_unit,
        "exit_waits_for_stores": m.sm.exit_waits_for_stores,
        "sm_warps": m.sm.warps,
        "sm_blocks": m.sm.blocks,
        "sm_threads": m.sm.threads,
        "sm_registers": m.sm.registers,
        "sm_shared": m.sm.shared_memory,
        "block_interval_ps": m.ps(m.kernel.block_launch_interval),
        "block_overhead_ps": m.ps(m.kernel.block_overhead),
        "warp_interval_ps": m.ps(m.kernel.warp_launch_interval),
        "cycle_ps": core_cycle_ps(m),
        "pipeline_ps": m.ps(m.sm.pipeline_latency),
        "issue_interval_ps": m.ps(m.sm.issue_interval),
        "assumed_instruction_ps": m.ps(m.sm.assumed_instruction_latency),
        "barrier_ps": m.ps(m.sm.issue_interval) + m.ps(m.sm.barrier_latency),
        "barrier_arrival_interval_ps": m.ps(m.sm.barrier_arrival_interval),
        "icache_miss_ps": m.ps(m.sm.icache_miss_latency),
        "icache_prefetch_lines": m.sm.icache_prefetch_lines,
    }
