"""The section of the compressors."""

from __future__ import annotations

from buddysim.machine import fields
from buddysim.machine.section import Duration, Section, Switch
from buddysim.machine.units import parse_time


class CompressionConfig(Section):
    """The compressor and decompressor of each L2 slice."""

    latency: Duration = fields.key(
        parse_time("11 dram_cycles"),
        "latency that compression or decompression adds to a write-back or fill",
        "Choukse et al. (arXiv 1903.02596), Tab. 2, after Kim et al., Bit-Plane Compression, ISCA 2016",
        ends=[],
    )
    initiation_interval: Duration = fields.key(
        parse_time("1 dram_cycles"),
        "time between two entries that enter the compressor or decompressor of a slice",
        "assumed: pipelined, one entry per slice and DRAM cycle",
    )
    fetch_whole_raw_entry: Switch = fields.key(
        False,
        "sectors moved of an entry that is stored raw; true: all of them; false: the requested sectors",
        "Choukse et al. (arXiv 1903.02596): only the requested sectors of an incompressible entry are moved",
        ends=["true"],
    )
