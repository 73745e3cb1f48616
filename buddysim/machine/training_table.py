"""The `[training]` table of a machine file: what a simulated training iteration depends on.

A layer's work runs at a fraction of the machine's peak rates (`buddysim.training.cost`). Copies to and from the host
use one of the named links. Its two directions are independent, unless rates of both at once are given.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Annotated

from pydantic import Field
from pydantic.fields import FieldInfo

from buddysim.machine import fields
from buddysim.machine.section import Duration, Section, SteadyRate
from buddysim.machine.units import Bandwidth, Frequency, parse_bandwidth, parse_size, parse_time

NVME = (
    "assumed: one drive of PCIe gen4 x4 for data centres; the Samsung PM9A3 was announced with 6.5 GB/s read and "
    "3.5 GB/s written (computerbase.de, May 2020)"
)


class HostLinkConfig(Section):
    """A link to the host: bandwidths of large copies from and to pinned host memory."""

    d2h_bandwidth: SteadyRate = Field(description="bandwidth of large copies from device to pinned host memory")
    h2d_bandwidth: SteadyRate = Field(description="bandwidth of large copies from pinned host to device memory")
    d2h_shared: SteadyRate | None = Field(
        default=None,
        description="bandwidth from device to host while a copy runs the other way; none: the same as d2h_bandwidth",
    )
    h2d_shared: SteadyRate | None = Field(
        default=None,
        description="bandwidth from host to device while a copy runs the other way; none: the same as h2d_bandwidth",
    )
    latency: Duration = fields.key(
        parse_time("10 us"),
        "time from the launch of a copy to its first byte",
        "assumed: launch of a cudaMemcpyAsync, about 10 us; the papers name none",
    )

    @cached_property
    def offload_bytes_per_s(self) -> int:
        """Device to host, in bytes per second."""
        return int(self.d2h_bandwidth.bytes_per_s({}))

    @cached_property
    def prefetch_bytes_per_s(self) -> int:
        """Host to device, in bytes per second."""
        return int(self.h2d_bandwidth.bytes_per_s({}))

    @cached_property
    def shared_fractions(self) -> tuple[Fraction, Fraction]:
        """Fractions of the rates that are left to device-to-host and to host-to-device copies that run at once."""
        return _left(self.d2h_shared, self.d2h_bandwidth), _left(self.h2d_shared, self.h2d_bandwidth)

    @cached_property
    def latency_ps(self) -> int:
        """Time from the launch of a copy to its first byte, in picoseconds, rounded to the nearest."""
        return round(self.latency.picoseconds({}))


def _left(shared: Bandwidth | None, alone: Bandwidth) -> Fraction:
    return Fraction(1) if shared is None else min(Fraction(1), shared.bytes_per_s({}) / alone.bytes_per_s({}))


class TrainingConfig(Section):
    """A GPU and its host as a training iteration sees them."""

    RULES = (
        "`training.link` is a link that every machine has, or one of `training.links`.",
        "`training.max_pinned_memory` is at most `training.host_memory`.",
        "`training.gpu_link` is a link of `buddysim/machine/gpu_links.toml`.",
    )

    fp32: Annotated[int, fields.flops()] = Field(
        description="peak single-precision rate; a multiplication and an addition count as two operations"
    )
    fp32_single_issue: Annotated[int, fields.flops()] | None = Field(
        default=None,
        description="peak single-precision rate with one instruction per warp scheduler and cycle; none: the same as "
        "training.fp32",
    )
    tf32: Annotated[int, fields.flops()] | None = Field(
        default=None, description="peak rate of tensor cores with dense TF32 operands; none: not supported"
    )
    fp16: Annotated[int, fields.flops()] | None = Field(
        default=None,
        description="peak rate of tensor cores with dense FP16 operands and FP32 accumulation; none: not supported",
    )
    bf16: Annotated[int, fields.flops()] | None = Field(
        default=None,
        description="peak rate of tensor cores with dense BF16 operands and FP32 accumulation; none: not supported",
    )
    fp8: Annotated[int, fields.flops()] | None = Field(
        default=None,
        description="peak rate of tensor cores with dense FP8 operands and FP32 accumulation; none: not supported",
    )
    sms: Annotated[int, fields.count(1, 1024)] = Field(description="number of SMs, on which thread blocks run in waves")
    clock: Annotated[Frequency, fields.frequency()] = Field(description="clock frequency of the peak rates")
    compute_capability: Annotated[str, fields.text(8)] | None = Field(
        default=None, description="CUDA's version of the SM, by which libraries choose kernels; none: not known"
    )
    l2_cache: Annotated[int, fields.size("1 KiB", "16 GiB")] | None = Field(
        default=None, description="capacity of the L2 cache; none: not known"
    )
    dram_bandwidth: SteadyRate = Field(description="peak bandwidth of device memory")
    device_memory: Annotated[int, fields.size("1 MiB", "16 TiB")] = Field(description="capacity of device memory")
    usable_memory: Annotated[int, fields.size("1 MiB", "16 TiB")] | None = Field(
        default=None,
        description="device memory that CUDA offers, after what ECC and the driver keep; none: training.device_memory",
    )
    context_memory: Annotated[int, fields.size("0 B", "64 GiB")] | None = Field(
        default=None,
        description="device memory of a process's CUDA context and the kernels loaded into it; none: not known, not "
        "counted",
    )
    cublas_workspace: Annotated[int, fields.size("0 B", "64 GiB")] | None = Field(
        default=None,
        description="device memory that PyTorch allocates for cuBLAS in each thread with matrix products; none: not "
        "known, not counted",
    )
    nccl_memory: Annotated[int, fields.size("0 B", "64 GiB")] | None = Field(
        default=None,
        description="device memory of NCCL for the other GPUs of a node; none: not known, not counted",
    )
    power_limit_w: Annotated[float, fields.number(1, 100000)] | None = Field(
        default=None, description="power limit of the GPU or card in watts; none: not known"
    )
    full_rate_power_w: Annotated[float, fields.number(1, 100000)] | None = Field(
        default=None,
        description="power in watts that the GPU needs for its peak rates, where training.power_limit_w is less; none: "
        "no more than the limit",
    )
    kernel_launch_overhead: Duration = fields.key(
        parse_time("5 us"),
        "time of a kernel in addition to its work",
        "assumed: launch and drain of a kernel on an idle stream; the smallest times in the shipped timings are a few "
        "microseconds",
    )
    conv_library: Annotated[str, fields.text(40)] = fields.key(
        "generic",
        "version of the convolution library whose calibration is the default; generic: no calibration",
        "assumed: no per-layer timings at hand",
    )
    calibrate_as: Annotated[str, fields.text(40)] | None = Field(
        default=None,
        description="name of the machine whose calibrated efficiencies are used, for machines without timings; none: "
        "the mean of all machines",
    )
    link: Annotated[str, fields.text(40)] = Field(default="pcie3", description="name of the link to the host")
    gpu_link: Annotated[str, fields.text(40)] | None = Field(
        default=None, description="name of the link to the other GPUs of a node; none: no other GPUs"
    )
    host_memory: Annotated[int, fields.size("1 MiB", "1024 TiB")] = fields.key(
        parse_size("64 GiB"), "capacity of host memory", "assumed: a desktop computer with 64 GiB"
    )
    max_pinned_memory: Annotated[int, fields.size("0 B", "1024 TiB")] = fields.key(
        parse_size("62 GiB"), "maximum pinned host memory", "assumed: all host memory but 2 GiB for the system"
    )
    host_memory_bandwidth: SteadyRate = fields.key(
        parse_bandwidth("89.6 GB/s"),
        "peak bandwidth of host memory",
        "assumed: a desktop computer with two channels of DDR5-5600",
    )
    host_cores: Annotated[int, fields.count(1, 4096)] = fields.key(
        16, "cores of the host that update weights", "assumed: a desktop computer with 16 cores"
    )
    nvme_read_bandwidth: SteadyRate = fields.key(
        parse_bandwidth("6.9 GB/s"), "bandwidth of large reads from the host's NVMe drives", NVME
    )
    nvme_write_bandwidth: SteadyRate = fields.key(
        parse_bandwidth("4.1 GB/s"), "bandwidth of large writes to the host's NVMe drives", NVME
    )
    links: dict[str, HostLinkConfig] = Field(
        default_factory=dict, description="links of this machine, in addition to those that every machine has"
    )


def training_field(key: str) -> FieldInfo:
    """Return the field of a dotted key of the table, such as ``training.fp32`` or ``training.links.pcie3.latency``."""
    section = HostLinkConfig if key.startswith("training.links.") else TrainingConfig
    return section.model_fields[key.rpartition(".")[2]]
