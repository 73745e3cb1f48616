"""The section of the link."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from buddysim.machine import fields
from buddysim.machine.section import PositiveDuration, Rate, Section
from buddysim.machine.units import Bandwidth, parse_bandwidth


class LinkConfig(Section):
    """The interconnect to memory outside the GPU: two independent directions."""

    bandwidth: Rate = Field(description="link bandwidth to the GPU")
    write_bandwidth: Annotated[Bandwidth, fields.bandwidth(zero=True)] = fields.key(
        parse_bandwidth("0 GB/s"),
        "link bandwidth from the GPU; 0 GB/s: link.bandwidth",
        "assumed: as to the GPU",
        zero_is="link.bandwidth",
    )
    load_to_use: PositiveDuration = Field(
        description="latency of an L2 miss to memory across the link on an idle machine, from issue to use"
    )
    protocol: Annotated[str, fields.member_of("link protocol")] = fields.key(
        "packets",
        "protocol: bytes that transfers add to their payload",
        "the simplest",
        ends=["packets", "nvlink"],
    )
    header_size: Annotated[int, fields.size("0 B", "4 KiB")] = fields.key(
        0,
        "size of a packet's header on the link; 0 B: link.bandwidth is goodput",
        "assumed: link.bandwidth is goodput, or the protocol has its own; 16 B or 32 B models packet headers",
        ends=["16 B", "32 B"],
    )
    max_payload: Annotated[int, fields.size("32 B", "64 KiB")] = fields.key(
        128,
        "maximum payload per packet on the link; 128 B: one entry",
        "assumed: one entry; only counts with a header",
    )

    @property
    def from_gpu(self) -> Bandwidth:
        """Bandwidth from the GPU."""
        return self.write_bandwidth if self.write_bandwidth.amount else self.bandwidth
