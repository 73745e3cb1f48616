"""The section of the L2 cache."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from buddysim.machine import fields
from buddysim.machine.parts.geometry import LINE_BYTES, SECTOR_BYTES, check_sets
from buddysim.machine.section import Duration, PositiveDuration, Rate, Section, Switch
from buddysim.machine.units import format_size, parse_time


class L2Config(Section):
    """The shared cache: write-back, with a valid and a dirty bit for each of a line's four sectors."""

    RULES = (
        "`l2.size` is a multiple of `l2.slices` x `l2.ways` x `l2.line`; the number of sets need not be a power of "
        "two.",
        "`l2.slices` is a multiple of `l2.partitions`.",
        "`l2.fetch_granularity` is 32 B or 64 B; `l2.interleave_granularity` is a power of two.",
        "`l2.max_dirty` is 0 B or at least one sector per set.",
    )

    size: Annotated[int, fields.size("4 KiB", "1 GiB")] = Field(description="L2 capacity of all slices together")
    slices: Annotated[int, fields.count(1, 1024)] = Field(description="number of L2 slices, each with its own port")
    ways: Annotated[int, fields.count(1, 1024)] = Field(description="L2 associativity")
    line: Annotated[int, fields.size("128 B", "128 B")] = fields.key(
        LINE_BYTES,
        "size of an L2 line of four 32 B sectors; 128 B is the only size modelled",
        "Choukse et al. (arXiv 1903.02596), Tab. 2; Accel-Sim, SM7_QV100/gpgpusim.config (Volta); assumed for others",
    )
    load_to_use: PositiveDuration = Field(description="latency of an L2 hit on an idle machine, from issue to use")
    bandwidth: Rate = Field(description="bandwidth of an L2 slice, in each direction")
    interleave_granularity: Annotated[int, fields.size("128 B", "64 KiB")] = fields.key(
        LINE_BYTES,
        "size of the contiguous memory that maps to one L2 slice, a power of two; 128 B: one line",
        "assumed: a line; hashes of addresses are not published",
    )
    slice_hash: Annotated[str, fields.member_of("slice hash")] = fields.key(
        "xor_fold",
        "hash of an address to its L2 slice",
        "assumed: hashes of addresses are not published",
    )
    mshrs: Annotated[int, fields.count(1, 4096)] = Field(description="outstanding line requests (MSHRs) per L2 slice")
    atomic_interval: PositiveDuration = fields.key(
        parse_time("1 core_cycles"),
        "time between two atomic operations of an L2 slice, each on one sector of one instruction",
        "assumed: one operation per clock, and all that an instruction does to a sector one operation; NVIDIA's "
        "Nsight guide, Memory Statistics - Atomics: threads of a warp on one address are serialized, others from "
        "compute capability 3.x on nearly as quick as loads",
    )
    dirty_store_interval: Duration = fields.key(
        parse_time("0 core_cycles"),
        "time of an L2 slice's port for each sector that a store finds dirty, in addition to that of its data; 0: none",
        "assumed: none; measured on Volta alone (gv100)",
    )
    max_dirty: Annotated[int, fields.size("0 B", "1 GiB")] = fields.key(
        0,
        "maximum dirty data in the L2, enforced per set: the oldest dirty lines beyond it are written "
        "back; 0 B: unlimited",
        "assumed: none; measured on Volta alone (gv100)",
    )
    writeback_buffer: Annotated[int, fields.count(0, 4096)] = fields.key(
        16,
        "lines that each L2 slice can be writing back at once; 0: no limit, and reading, merging and compressing "
        "what is written back delays nothing",
        "Accel-Sim, SM7_QV100/gpgpusim.config: gpgpu_dram_partition_queues 64:64:64:64, 64 sectors from a slice to its "
        "memory; assumed: whole lines. 1 is the least with which they are written at 95 % of the peak",
        ends=["1", "0"],
    )
    fetch_granularity: Annotated[int, fields.size("32 B", "64 B")] = fields.key(
        32,
        "size of an L2 read miss to uncompressed memory; 32 B: a sector; 64 B: an aligned pair of sectors",
        "assumed: a sector; NVIDIA's default is 64 B on Volta (gv100), others were not checked",
    )
    partitions: Annotated[int, fields.count(1, 16)] = fields.key(
        1,
        "number of L2 partitions with equal numbers of slices; an SM reads through its local partition, "
        "which replicates remote lines; 1: a single L2",
        "no partitions are known",
    )
    partition_latency: Duration = fields.key(
        parse_time("0 core_cycles"),
        "additional round-trip latency of a request to a remote L2 partition",
        "one partition",
    )
    fill_on_memcpy: Switch = fields.key(
        True,
        "contents of the L2 after a memcpy or memset; true: the last bytes written; false: none of them",
        "assumed: copies pass through the L2, as Accel-Sim models them",
    )

    @model_validator(mode="after")
    def _geometry_is_simulated(self) -> L2Config:
        if self.fetch_granularity not in (32, 64):
            raise ValueError(f"fetch_granularity: {self.fetch_granularity} B: expected 32 B or 64 B")
        if self.interleave_granularity & self.interleave_granularity - 1:
            raise ValueError(f"interleave_granularity: {self.interleave_granularity} B: expected a power of two")
        if self.slices % self.partitions:
            raise ValueError(f"slices: {self.slices}: expected a multiple of partitions, {self.partitions}")
        check_sets(self.size, self.slices, self.ways, self.line)
        sector_per_set = SECTOR_BYTES * self.size // (self.ways * self.line)
        if 0 < self.max_dirty < sector_per_set:
            raise ValueError(
                f"max_dirty: {format_size(self.max_dirty)} is less than a sector per set: expected 0 B or at least "
                f"{format_size(sector_per_set)}"
            )
        return self
