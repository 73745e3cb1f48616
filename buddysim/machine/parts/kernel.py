"""The section of launches."""

from __future__ import annotations

from typing import Annotated

from buddysim.machine import fields
from buddysim.machine.section import Duration, Section, Switch
from buddysim.machine.units import parse_time


class KernelConfig(Section):
    """Launches of kernels and thread blocks."""

    launch_latency: Duration = fields.key(
        parse_time("0 ns"),
        "time from the launch of a kernel to its first thread block",
        "assumed: launches overlap with the previous kernel; Choukse et al. (arXiv 1903.02596) give none",
    )
    block_launch_interval: Duration = fields.key(
        parse_time("1 core_cycles"),
        "minimum time between two thread-block launches on one SM",
        "assumed: one thread block per SM and cycle, as GPGPU-Sim does",
    )
    warp_launch_interval: Duration = fields.key(
        parse_time("0 core_cycles"),
        "time between the starts of two warps of a thread block; 0: all its warps start together",
        "assumed: in the overhead of a thread block",
    )
    block_overhead: Duration = fields.key(
        parse_time("0 core_cycles"),
        "time of a thread block in addition to its instructions, for the first fetch and the final drain; 0: none",
        "assumed: hidden behind the other thread blocks of an SM; not published",
    )
    block_order: Annotated[str, fields.one_of("round_robin")] = fields.key(
        "round_robin",
        "order in which SMs below their occupancy limits get thread blocks; round_robin: SM after SM",
        "assumed: the order that GPGPU-Sim and the literature use",
    )
    concurrent_kernels: Switch = fields.key(
        True,
        "overlap of kernels of different streams; true: they may overlap; false: one kernel at a time",
        "NVIDIA, CUDA C++ Programming Guide, concurrent kernel execution: kernels of different streams may run at once",
    )
