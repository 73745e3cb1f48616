"""The sections of a machine file that every replay depends on.

Each section is a class and each key a field. `docs/reference/machine-keys.md` repeats the fields' descriptions.
Validators check the rules between the keys of one section.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from buddysim.machine import fields
from buddysim.machine.section import Duration, PositiveDuration, Rate, Section, Switch
from buddysim.machine.units import Bandwidth, Frequency, format_size, parse_bandwidth, parse_time

SECTOR_BYTES = 32
LINE_BYTES = 128

MAX_BANKS = 2**16
"""Largest number of DRAM banks in all channels: the engine has 16 bits for the bank of a line."""


class ClockConfig(Section):
    """The clocks that cycles in machine files refer to."""

    core: Annotated[Frequency, fields.frequency()] = Field(description="clock frequency of SMs, L1, crossbar and L2")
    dram: Annotated[Frequency, fields.frequency()] = Field(
        description="frequency of the command clock of device memory; HBM2 transfers twice per cycle, HBM3 four times"
    )


class SmConfig(Section):
    """The streaming multiprocessors (SMs) and their occupancy limits."""

    RULES = ("`sm.threads` is at least 32 times `sm.warps`.",)

    count: Annotated[int, fields.count(1, 1024)] = Field(description="number of SMs")
    schedulers: Annotated[int, fields.count(1, 16)] = Field(
        description="warp schedulers per SM; warp n belongs to scheduler n modulo this number"
    )
    policy: Annotated[str, fields.one_of("gto", "lrr")] = Field(
        description="policy of the warp schedulers; gto: greedy-then-oldest; lrr: loose round-robin"
    )
    warps: Annotated[int, fields.count(1, 64)] = Field(description="maximum resident warps per SM")
    blocks: Annotated[int, fields.count(1, 256)] = Field(description="maximum resident thread blocks per SM")
    threads: Annotated[int, fields.count(32, 8192)] = Field(description="maximum resident threads per SM")
    registers: Annotated[int, fields.count(32, 2**24)] = Field(description="number of 32-bit registers per SM")
    shared_memory: Annotated[int, fields.size("0 B", "16 MiB")] = Field(description="size of shared memory per SM")
    issue_interval: PositiveDuration = Field(description="minimum time between two instructions of one warp")
    pipeline_latency: Duration = Field(
        description="pipeline part of the dependent-issue latency; each dependent hop of a compute gap adds it to the "
        "execution latency in the trace"
    )
    assumed_instruction_latency: Duration = Field(
        description="time per instruction of a compute gap, for traces that have instruction counts without dependences"
    )
    barrier_latency: Duration = Field(
        default=parse_time("0 core_cycles"),
        description="time from the last arrival at a barrier to the next instructions of its warps, in addition to the "
        "issue interval; 0: barriers release at once",
    )
    barrier_arrival_interval: Duration = Field(
        default=parse_time("0 core_cycles"),
        description="time between two barrier arrivals of one SM; 0: any number of warps arrive at once",
    )
    icache_miss_latency: Duration = Field(
        default=parse_time("0 core_cycles"),
        description="latency of the first fetch of an instruction-cache line by an SM in a kernel; 0: instruction "
        "fetches always hit",
    )
    icache_prefetch_lines: Annotated[int, fields.count(0, 64)] = Field(
        default=0,
        description="instruction-cache lines prefetched after the one that a warp reaches; 0: no prefetch",
    )
    blocking_atomics: Switch = Field(
        default=False,
        description="waiting for atomics whose result is unused; true: the warp blocks until the atomic returns; "
        "false: the warp continues, as after any load",
    )
    split_conflicting_atomics: Switch = Field(
        default=False,
        description="requests of an atomic instruction whose lanes have one address; true: one request for each such "
        "lane; false: one request per line",
    )
    stall_on_busy_unit: Switch = Field(
        default=False,
        description="waiting of a warp whose execution unit is busy; true: its own initiation intervals delay it, too; "
        "false: these delay only the warps after it",
    )
    exit_waits_for_stores: Switch = Field(
        default=True,
        description="waiting of an exiting warp for the acknowledgements of its stores; true: the warp waits; false: "
        "only the end of the kernel waits",
    )

    @model_validator(mode="after")
    def _warps_fit_threads(self) -> SmConfig:
        if self.threads < 32 * self.warps:
            raise ValueError(f"threads: {self.threads} is less than warps x 32: expected at least {32 * self.warps}")
        return self


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


class L1Config(Section):
    """The private cache of an SM: write-through, no allocation on a store, invalidated at kernel boundaries."""

    RULES = (
        "`l1.size` is a multiple of `l1.ways` x `l1.line`; the number of sets need not be a power of two.",
        '`l1.lines_per_cycle` is 1 with `l1.bank_conflicts = "tag_and_data"`.',
    )

    enabled: Switch = Field(
        default=True, description="use of the L1; true: loads look it up; false: every access goes to the L2"
    )
    size: Annotated[int, fields.size("512 B", "16 MiB")] = Field(description="L1 capacity per SM")
    ways: Annotated[int, fields.count(1, 1024)] = Field(description="L1 associativity")
    line: Annotated[int, fields.size("128 B", "128 B")] = Field(
        default=LINE_BYTES, description="size of an L1 line of four 32 B sectors; 128 B is the only size modelled"
    )
    load_to_use: PositiveDuration = Field(description="latency of an L1 hit on an idle machine, from issue to use")
    lines_per_cycle: Annotated[int, fields.count(1, 16)] = Field(
        description="lines of one instruction that the L1 looks up per core cycle"
    )
    bank_conflicts: Annotated[str, fields.one_of("none", "sector", "tag_and_data")] = Field(
        default="none",
        description="model of L1 bank conflicts; none: lines enter at lines_per_cycle; sector: sector n of each line "
        "is in bank n, and lines of an instruction without a common bank enter together; tag_and_data: an instruction "
        "takes one cycle per line in the busiest of 4 tag banks, and at least one per word in the busiest of 32 data "
        "banks",
    )
    mshrs: Annotated[int, fields.count(1, 4096)] = Field(description="outstanding line requests (MSHRs) per L1")
    max_mshr_merges: Annotated[int, fields.count(0, 14)] = Field(
        default=0,
        description="maximum accesses that merge with one pending line; the next one blocks the L1 until the line has "
        "arrived; 0: unlimited",
    )

    @model_validator(mode="after")
    def _size_is_a_multiple_of_sets(self) -> L1Config:
        _check_sets(self.size, 1, self.ways, self.line)
        return self

    @model_validator(mode="after")
    def _tag_banks_replace_lines_per_cycle(self) -> L1Config:
        if self.bank_conflicts == "tag_and_data" and self.lines_per_cycle != 1:
            raise ValueError(
                f"lines_per_cycle: {self.lines_per_cycle} with bank_conflicts tag_and_data: expected 1, as the banks "
                "determine the lines per cycle"
            )
        return self


class CrossbarConfig(Section):
    """The network between SMs and L2 slices; each SM has one port in each direction."""

    request_bandwidth: Rate = Field(description="bandwidth from one SM to the L2, for requests and store data")
    reply_bandwidth: Rate = Field(description="bandwidth from the L2 to one SM, for load data")
    input_queued: Switch = Field(
        default=False,
        description="queueing of requests; true: one FIFO per SM with a request per sector, whose head blocks all "
        "others (head-of-line blocking); false: ports with a bandwidth and no blocking",
    )
    interleave_requesters: Switch = Field(
        default=False,
        description="arbitration between two SMs at one L2 slice, a stand-in for iSLIP that needs input_queued; true: "
        "each gets every other slot; false: first come, first served",
    )


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
    line: Annotated[int, fields.size("128 B", "128 B")] = Field(
        default=LINE_BYTES, description="size of an L2 line of four 32 B sectors; 128 B is the only size modelled"
    )
    load_to_use: PositiveDuration = Field(description="latency of an L2 hit on an idle machine, from issue to use")
    bandwidth: Rate = Field(description="bandwidth of an L2 slice, in each direction")
    interleave_granularity: Annotated[int, fields.size("128 B", "64 KiB")] = Field(
        default=LINE_BYTES,
        description="size of the contiguous memory that maps to one L2 slice, a power of two; 128 B: one line",
    )
    slice_hash: Annotated[str, fields.member_of("slice hash")] = Field(
        default="xor_fold", description="hash of an address to its L2 slice"
    )
    mshrs: Annotated[int, fields.count(1, 4096)] = Field(description="outstanding line requests (MSHRs) per L2 slice")
    atomic_interval: PositiveDuration = Field(
        default=parse_time("1 core_cycles"),
        description="time between two atomic operations of an L2 slice, each on one sector of one instruction",
    )
    dirty_store_interval: Duration = Field(
        default=parse_time("0 core_cycles"),
        description="time of an L2 slice's port for each sector that a store finds dirty, in addition to that of its "
        "data; 0: none",
    )
    max_dirty: Annotated[int, fields.size("0 B", "1 GiB")] = Field(
        default=0,
        description="maximum dirty data in the L2, enforced per set: the oldest dirty lines beyond it are written "
        "back; 0 B: unlimited",
    )
    fetch_granularity: Annotated[int, fields.size("32 B", "64 B")] = Field(
        default=32,
        description="size of an L2 read miss to uncompressed memory; 32 B: a sector; 64 B: an aligned pair of sectors",
    )
    partitions: Annotated[int, fields.count(1, 16)] = Field(
        default=1,
        description="number of L2 partitions with equal numbers of slices; an SM reads through its local partition, "
        "which replicates remote lines; 1: a single L2",
    )
    partition_latency: Duration = Field(
        default=parse_time("0 core_cycles"),
        description="additional round-trip latency of a request to a remote L2 partition",
    )
    fill_on_memcpy: Switch = Field(
        description="contents of the L2 after a memcpy or memset; true: the last bytes written; false: none of them"
    )

    @model_validator(mode="after")
    def _geometry_is_simulated(self) -> L2Config:
        if self.fetch_granularity not in (32, 64):
            raise ValueError(f"fetch_granularity: {self.fetch_granularity} B: expected 32 B or 64 B")
        if self.interleave_granularity & self.interleave_granularity - 1:
            raise ValueError(f"interleave_granularity: {self.interleave_granularity} B: expected a power of two")
        if self.slices % self.partitions:
            raise ValueError(f"slices: {self.slices}: expected a multiple of partitions, {self.partitions}")
        _check_sets(self.size, self.slices, self.ways, self.line)
        sector_per_set = SECTOR_BYTES * self.size // (self.ways * self.line)
        if 0 < self.max_dirty < sector_per_set:
            raise ValueError(
                f"max_dirty: {format_size(self.max_dirty)} is less than a sector per set: expected 0 B or at least "
                f"{format_size(sector_per_set)}"
            )
        return self


class MetadataCacheConfig(Section):
    """The cache of the entries' 4-bit size classes, next to the L2 slices."""

    RULES = (
        "`metadata_cache.line` is 32 B, 64 B or 128 B.",
        "`metadata_cache.size` is a multiple of `metadata_cache.slices` x `metadata_cache.ways` x "
        "`metadata_cache.line`.",
    )

    size: Annotated[int, fields.size("32 B", "64 MiB")] = Field(
        default=128 * 1024, description="metadata-cache capacity of all slices together"
    )
    slices: Annotated[int, fields.count(1, 1024)] = Field(default=32, description="number of metadata-cache slices")
    ways: Annotated[int, fields.count(1, 1024)] = Field(default=4, description="metadata-cache associativity")
    line: Annotated[int, fields.size("32 B", "128 B")] = Field(
        default=32,
        description="size of a metadata line; 32 B hold the size classes of 64 entries, one metadata page of 8 KiB",
    )
    hit_latency: Duration = Field(
        default=parse_time("0 core_cycles"),
        description="latency that a metadata lookup adds to an L2 miss or write-back; 0: none",
    )
    lookup_interval: Duration = Field(
        default=parse_time("1 core_cycles"), description="time between two lookups in a metadata-cache slice"
    )
    speculative_fetch: Switch = Field(
        default=True,
        description="fetch of device sectors on a metadata miss; true: in parallel with the metadata; false: after it",
    )
    on_pending_line: Annotated[str, fields.one_of("speculate", "wait")] = Field(
        default="speculate",
        description="action of a fill whose metadata line is pending; speculate: the same as on a miss; wait: fetch "
        "data after the line has arrived",
    )
    cancel_misspeculated: Switch = Field(
        default=False,
        description="handling of unneeded speculative sectors that device memory has not begun to read; true: they are "
        "cancelled; false: they are read",
    )
    perfect: Switch = Field(
        default=False,
        description="cost of metadata; true: entry sizes are known without lookups and traffic; false: as modelled",
    )

    @model_validator(mode="after")
    def _size_is_a_multiple_of_sets(self) -> MetadataCacheConfig:
        if self.line not in (32, 64, 128):
            raise ValueError(f"line: {self.line} B: expected 32 B, 64 B or 128 B")
        _check_sets(self.size, self.slices, self.ways, self.line)
        return self


class DramTimingConfig(Section):
    """Minimum times between commands of device memory, named as in JESD235."""

    tRCD: Duration = Field(description="time from activate to column command")
    tRP: Duration = Field(description="time from precharge to activate")
    tCL: Duration = Field(description="time from read command to data")
    tCWL: Duration = Field(description="time from write command to data")
    tRAS: Duration = Field(description="time from activate to precharge")
    tCCD_S: Duration = Field(description="time between column commands to different bank groups")
    tCCD_L: Duration = Field(description="time between column commands to one bank group")
    tRRD_S: Duration = Field(description="time between activates in different bank groups")
    tRRD_L: Duration = Field(description="time between activates in one bank group")
    tFAW: Duration = Field(description="four-activate window: minimum time from an activate to the fourth after it")
    tWR: Duration = Field(description="time from the end of write data to precharge")
    tWTR: Duration = Field(description="time from the end of write data to read command")
    tRTW: Duration = Field(description="time from read command to write command")
    tRTP: Duration = Field(description="time from read command to precharge")
    tRFC: Duration = Field(description="duration of an all-bank refresh, during which all banks are closed")
    tREFI: Duration = Field(description="mean interval between refreshes; 0: no refresh")
    tRFCSB: Duration = Field(
        default=parse_time("160 ns"), description="duration of a single-bank refresh, with refresh single_bank"
    )


class DramConfig(Section):
    """Device memory."""

    RULES = (
        "`dram.banks` is a power of two and a multiple of `dram.bank_groups`.",
        "`dram.channels` x `dram.pseudo_channels` x `dram.banks` is at most 65,536.",
        "`dram.row_bytes` is a multiple of 32 B.",
        "`dram.write_low_watermark` is below `dram.write_high_watermark`.",
    )

    model: Annotated[str, fields.one_of("banked", "simple")] = Field(
        default="banked",
        description="model of device memory; banked: rows, bank groups, bus turnarounds and refresh; simple: bandwidth "
        "and latency alone",
    )
    capacity: Annotated[int, fields.size("1 MiB", "1024 TiB")] = Field(description="capacity of device memory")
    channels: Annotated[int, fields.count(1, 1024)] = Field(description="number of device memory channels")
    pseudo_channels: Annotated[int, fields.count(1, 16)] = Field(description="number of pseudo-channels per channel")
    pseudo_channel_bandwidth: Rate = Field(description="peak bandwidth of a pseudo-channel")
    load_to_use: PositiveDuration = Field(
        description="latency of an L2 miss to a closed DRAM bank on an idle machine, from issue to use"
    )
    row_bytes: Annotated[int, fields.size("32 B", "1 MiB")] = Field(description="size of a row of one DRAM bank")
    banks: Annotated[int, fields.count(1, 1024)] = Field(description="number of banks per pseudo-channel")
    bank_groups: Annotated[int, fields.count(1, 1024)] = Field(description="number of bank groups per pseudo-channel")
    write_high_watermark: Annotated[int, fields.count(1, 128)] = Field(
        description="queued write bursts of a pseudo-channel that start a write drain although reads wait"
    )
    write_low_watermark: Annotated[int, fields.count(0, 127)] = Field(
        description="queued write bursts at which a write drain ends if reads wait; the same number starts a drain if "
        "no read waits"
    )
    refresh: Annotated[str, fields.one_of("all_bank", "single_bank")] = Field(
        default="all_bank",
        description="refresh mode; all_bank: all banks refresh together, for tRFC; single_bank: one bank after the "
        "other refreshes, for tRFCSB",
    )
    write_drain: Annotated[str, fields.one_of("interleaved", "exclusive")] = Field(
        default="interleaved",
        description="bus slots of reads during a write drain; interleaved: reads use the slots that writes leave free; "
        "exclusive: reads wait until the drain has ended",
    )
    timing: DramTimingConfig

    @model_validator(mode="after")
    def _geometry_is_simulated(self) -> DramConfig:
        if self.banks & (self.banks - 1):
            raise ValueError(f"banks: {self.banks}: expected a power of two")
        if self.banks % self.bank_groups:
            raise ValueError(f"banks: {self.banks}: expected a multiple of bank_groups, {self.bank_groups}")
        if self.channels * self.pseudo_channels * self.banks > MAX_BANKS:
            raise ValueError(f"channels x pseudo_channels x banks: expected at most {MAX_BANKS}")
        if self.row_bytes % SECTOR_BYTES:
            raise ValueError(f"row_bytes: {self.row_bytes} B: expected a multiple of the {SECTOR_BYTES} B burst")
        if self.write_low_watermark >= self.write_high_watermark:
            raise ValueError(
                f"write_low_watermark: {self.write_low_watermark}: expected less than write_high_watermark, "
                f"{self.write_high_watermark}"
            )
        return self


class LinkConfig(Section):
    """The interconnect to buddy and host memory: two independent directions."""

    bandwidth: Rate = Field(description="link bandwidth to the GPU")
    write_bandwidth: Annotated[Bandwidth, fields.bandwidth(zero=True)] = Field(
        default=parse_bandwidth("0 GB/s"), description="link bandwidth from the GPU; 0 GB/s: link.bandwidth"
    )
    load_to_use: PositiveDuration = Field(
        description="latency of an L2 miss to memory across the link on an idle machine, from issue to use"
    )
    header_size: Annotated[int, fields.size("0 B", "4 KiB")] = Field(
        default=0, description="size of a packet's header on the link; 0 B: link.bandwidth is goodput"
    )
    max_payload: Annotated[int, fields.size("32 B", "64 KiB")] = Field(
        default=128, description="maximum payload per packet on the link; 128 B: one entry"
    )


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


class BuddyConfig(Section):
    """The carve-out of buddy memory."""

    carve_out_ratio: Annotated[int, fields.count(0, 64)] = Field(
        default=3, description="size of buddy memory as a multiple of device memory"
    )
    bypass_1x: Switch = Field(
        default=True,
        description="storage of allocations with target ratio 1x; true: uncompressed and without metadata; false: as "
        "any other",
    )
    eight_byte_class: Switch = Field(
        default=True,
        description="size class for entries of 1 to 8 B, which the target ratio 16x needs; true: the metadata have it; "
        "false: such entries count as 32 B",
    )


def _check_sets(size: int, slices: int, ways: int, line: int) -> None:
    set_bytes = slices * ways * line
    if size % set_bytes:
        of_slices = f"{slices} slices x " if slices > 1 else ""
        raise ValueError(
            f"size: {format_size(size)} is not an integer number of sets of {of_slices}{ways} ways x {line} B: "
            f"expected a multiple of {format_size(set_bytes)}"
        )
