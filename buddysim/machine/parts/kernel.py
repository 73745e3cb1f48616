"""The section of launches."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from buddysim.machine import fields
from buddysim.machine.section import Duration, Section, Switch
from buddysim.machine.units import parse_time


class KernelConfig(Section):
    """Launches of kernels and thread blocks."""

    launch_latency: Duration = Field(description="time from the launch of a kernel to its first thread block")
    block_launch_interval: Duration = Field(description="minimum time between two thread-block launches on one SM")
    warp_launch_interval: Duration = Field(
        default=parse_time("0 core_cycles"),
        description="time between the starts of two warps of a thread block; 0: all its warps start together",
    )
    block_overhead: Duration = Field(
        default=parse_time("0 core_cycles"),
        description="time of a thread block in addition to its instructions, for the first fetch and the final drain; "
        "0: none",
    )
    block_order: Annotated[str, fields.one_of("round_robin")] = Field(
        default="round_robin",
        description="order in which SMs below their occupancy limits get thread blocks; round_robin: SM after SM",
    )
    concurrent_kernels: Switch = Field(
        default=True,
        description="overlap of kernels of different streams; true: they may overlap; false: one kernel at a time",
    )
