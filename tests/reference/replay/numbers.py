"""The machine's numbers, as docs/reference/replay-rules.md names them: integer picoseconds and costs of ports."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from buddysim.machine import Machine

FINE = 1024
"""Costs of ports are in 1/1024 ps."""

SECTOR_BYTES, LINE_BYTES = 32, 128
PS_PER_S = 10**12
LARGEST_DENOMINATOR = 10_000


def sector_time(bytes_per_s: int) -> int:
    """Return the time of a sector at a bandwidth, in whole ps, rounded up."""
    return ceil(Fraction(SECTOR_BYTES * PS_PER_S, bytes_per_s))


def port_cost(size: int, bytes_per_s: int) -> int:
    """Return the cost of `size` bytes at a port of a bandwidth, rounded up."""
    return ceil(Fraction(size * PS_PER_S * FINE, bytes_per_s))


class RefNumbers:
    """The machine's times in ps and costs in 1/1024 ps.

    Parameters
    ----------
    machine : the machine
    compute_gap_scale : factor on the trace's compute gaps and critical paths
    """

    def __init__(self, machine: Machine, compute_gap_scale: Fraction) -> None:
        m = self.machine = machine
        self.compute_gap_scale = compute_gap_scale.limit_denominator(LARGEST_DENOMINATOR)
        self.cycle = max(1, int(Fraction(PS_PER_S, m.clock.core.hz) + Fraction(1, 2)))
        self.step = m.ps(m.sm.pipeline_latency)
        self.issue_interval = m.ps(m.sm.issue_interval)
        self.barrier = self.issue_interval + m.ps(m.sm.barrier_latency)
        self.barrier_interval = m.ps(m.sm.barrier_arrival_interval)
        self.code_latency = m.ps(m.sm.icache_miss_latency)
        self.assumed = m.ps(m.sm.assumed_instruction_latency)
        self.launch_latency = m.ps(m.kernel.launch_latency)
        self.block_launch_interval = m.ps(m.kernel.block_launch_interval)
        self.block_latency = m.ps(m.kernel.block_overhead)
        self.warp_launch_interval = m.ps(m.kernel.warp_launch_interval)
        self.l1_hit = m.ps(m.l1.load_to_use)
        self.l1_line = max(1, self.cycle // m.l1.lines_per_cycle)
        self.l1_queue = 32 * self.l1_line
        self.l1_sets = m.l1.size // (m.l1.ways * LINE_BYTES)
        request, reply, l2 = (
            m.bytes_per_s(rate) for rate in (m.crossbar.request_bandwidth, m.crossbar.reply_bandwidth, m.l2.bandwidth)
        )
        self.request_cost = port_cost(SECTOR_BYTES, request)
        self.reply_cost = port_cost(SECTOR_BYTES, reply)
        self.slice_cost = port_cost(SECTOR_BYTES, l2)
        self.request_sector, self.sm_reply_sector, self.slice_sector = map(sector_time, (request, reply, l2))
        self.reply_sector = max(sector_time(reply), sector_time(l2))
        self.l2_hit = m.ps(m.l2.load_to_use)
        half = self.l2_hit // 2
        self.request_half = max(half, self.request_sector)
        self.reply_half = max(self.l2_hit - half, self.reply_sector)
        self.acknowledgement_half = max(self.l2_hit - half, self.slice_sector)
        self.l2_sets = m.l2.size // (m.l2.slices * m.l2.ways * LINE_BYTES)
        self.pseudo_channels = m.dram.channels * m.dram.pseudo_channels

    def scaled(self, value: int) -> int:
        """Return a compute gap or critical path times the run's factor, rounded to nearest, halves up."""
        scale = self.compute_gap_scale
        return (2 * value * scale.numerator + scale.denominator) // (2 * scale.denominator)

    def span(self, instructions: int, cycles: int, steps: int, timed: bool) -> int:
        """Return the time of a critical path, scaled."""
        if not timed:
            return self.scaled(instructions * self.assumed)
        return self.scaled(max(cycles * self.cycle + steps * self.step, instructions * self.issue_interval))
