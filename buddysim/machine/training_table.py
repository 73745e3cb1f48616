"""The `[training]` table of a machine file: what a simulated training iteration depends on.

A layer's work runs at a share of the machine's peak rates (`buddysim.training.cost`); copies to and from the host run
over one of the named links, each direction on its own.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated

from pydantic import Field

from buddysim.machine import fields
from buddysim.machine.section import Duration, Section, SteadyRate
from buddysim.machine.units import Frequency, parse_size, parse_time


class LinkRate(Section):
    """A link to the host: the rates that large copies from and to pinned host memory reach."""

    offload: SteadyRate = Field(description="device to host")
    prefetch: SteadyRate = Field(description="host to device")
    latency: Duration = Field(default=parse_time("10 us"), description="from a copy's launch to its first byte")

    @cached_property
    def offload_bytes_per_s(self) -> int:
        """Device to host, in bytes per second."""
        return int(self.offload.bytes_per_s({}))

    @cached_property
    def prefetch_bytes_per_s(self) -> int:
        """Host to device, in bytes per second."""
        return int(self.prefetch.bytes_per_s({}))

    @cached_property
    def latency_ps(self) -> int:
        """From a copy's launch to its first byte, in picoseconds, rounded to the nearest."""
        return round(self.latency.picoseconds({}))


class Training(Section):
    """A GPU and its host as a training iteration sees them."""

    fp32: Annotated[int, fields.flops()] = Field(
        description="peak single-precision rate; a multiplication and an addition count as two"
    )
    fp32_single_issue: Annotated[int, fields.flops()] | None = Field(
        default=None,
        description="the same where warp schedulers issue one instruction per cycle, if that is less; none: the peak",
    )
    tf32: Annotated[int, fields.flops()] | None = Field(
        default=None, description="peak rate of tensor cores on TF32 operands, dense; none: not offered"
    )
    fp16: Annotated[int, fields.flops()] | None = Field(
        default=None, description="peak rate of tensor cores on FP16 operands, dense, sums in FP32; none: not offered"
    )
    bf16: Annotated[int, fields.flops()] | None = Field(
        default=None, description="peak rate of tensor cores on BF16 operands, dense, sums in FP32; none: not offered"
    )
    sms: Annotated[int, fields.count(1, 1024)] = Field(description="SMs, over which thread blocks run in waves")
    clock: Annotated[Frequency, fields.frequency()] = Field(description="clock at which the peak rate is reached")
    dram_bandwidth: SteadyRate = Field(description="peak bandwidth of device memory")
    memory: Annotated[int, fields.size("1 MiB", "16 TiB")] = Field(description="capacity of device memory")
    launch: Duration = Field(default=parse_time("5 us"), description="overhead of each kernel besides its work")
    library: Annotated[str, fields.text(40)] = Field(
        default="generic", description="library version whose calibration is the default; generic: none"
    )
    timed_like: Annotated[str, fields.text(40)] | None = Field(
        default=None,
        description="machine with timings whose efficiencies this one takes without any; none: the mean of all",
    )
    link: Annotated[str, fields.text(40)] = Field(default="pcie3", description="name of the link to the host in use")
    host_memory: Annotated[int, fields.size("1 MiB", "1024 TiB")] = Field(
        default=parse_size("64 GiB"), description="capacity of host memory"
    )
    host_pinned: Annotated[int, fields.size("0 B", "1024 TiB")] = Field(
        default=parse_size("62 GiB"), description="maximum host memory that can be pinned for copies"
    )
    links: dict[str, LinkRate] = Field(
        default_factory=dict, description="links of this machine, besides those that every machine has"
    )
