"""The section of the compressors."""

from __future__ import annotations

from pydantic import Field

from buddysim.machine.section import Duration, Section, Switch
from buddysim.machine.units import parse_time


class CompressionConfig(Section):
    """The compressor and decompressor of each L2 slice."""

    latency: Duration = Field(
        default=parse_time("11 dram_cycles"),
        description="latency that compression or decompression adds to a write-back or fill",
    )
    initiation_interval: Duration = Field(
        default=parse_time("1 dram_cycles"),
        description="time between two entries that enter the compressor or decompressor of a slice",
    )
    fetch_whole_raw_entry: Switch = Field(
        default=False,
        description="sectors moved of an entry that is stored raw; true: all of them; false: the requested sectors",
    )
