"""The sections of a machine file that every replay depends on.

Each section is one class, each key one field, whose description `docs/machine-files.md` repeats. Rules between the keys
of a section are its validator's.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from buddysim.machine import fields
from buddysim.machine.section import Duration, PositiveDuration, Rate, Section, Switch
from buddysim.machine.units import Frequency, format_size, parse_time

SECTOR_BYTES = 32
LINE_BYTES = 128

MAX_BANKS = 2**16
"""Of all channels: the engine has 16 bits for the bank of a line."""


POLYNOMIALS = {1: 0b1, 2: 0b11, 4: 0b111, 8: 0b1011, 16: 0b10011, 32: 0b100101, 64: 0b1000011}
"""By number of slices: coefficients of the irreducible polynomial of `l2.slice_hash = "ipoly"`, bit i that of x^i."""


class Clocks(Section):
    """The clocks in whose cycles times are given."""

    core: Annotated[Frequency, fields.frequency()] = Field(description="clock of SMs, L1, crossbar and L2")
    dram: Annotated[Frequency, fields.frequency()] = Field(
        description="command clock of device memory (HBM2: two transfers per cycle, HBM3: four)"
    )


class Sm(Section):
    """The streaming multiprocessors (SMs) and the limits of their occupancy."""

    count: Annotated[int, fields.count(1, 1024)] = Field(description="SMs of the machine")
    schedulers: Annotated[int, fields.count(1, 16)] = Field(
        description="warp schedulers per SM; warp n belongs to scheduler n modulo this"
    )
    policy: Annotated[str, fields.one_of("gto", "lrr")] = Field(
        description="gto: greedy, then oldest; lrr: loose round-robin"
    )
    warps: Annotated[int, fields.count(1, 64)] = Field(description="maximum resident warps per SM")
    blocks: Annotated[int, fields.count(1, 256)] = Field(description="maximum resident thread blocks per SM")
    threads: Annotated[int, fields.count(32, 8192)] = Field(description="maximum resident threads per SM")
    registers: Annotated[int, fields.count(32, 2**24)] = Field(description="32-bit registers per SM")
    shared_memory: Annotated[int, fields.size("0 B", "16 MiB")] = Field(description="shared memory per SM")
    issue_interval: PositiveDuration = Field(description="minimum time between two instructions of one warp")
    step_latency: Duration = Field(
        description="pipeline latency from a result to its use: each dependent wait adds it to the execution latencies "
        "of the trace"
    )
    assumed_instruction: Duration = Field(
        description="time per instruction where the trace has only the number of instructions, not their dependences"
    )
    barrier_latency: Duration = Field(
        default=parse_time("0 core_cycles"),
        description="from a barrier's last warp to the next instructions of its warps, besides the issue interval",
    )
    barrier_interval: Duration = Field(
        default=parse_time("0 core_cycles"),
        description="time that an SM's barriers take for each warp that comes to one, one after the other",
    )
    code_latency: Duration = Field(
        default=parse_time("0 core_cycles"),
        description="time until an SM has a line of code that it has not had in this kernel; 0: code is always there",
    )
    code_ahead: Annotated[int, fields.count(0, 64)] = Field(
        default=0, description="lines of code that are fetched ahead of the one that a warp gets to"
    )
    blocking_atomics: Switch = Field(
        default=False,
        description="true: an atomic blocks its warp until it returns, even if its result is unused; false: as a load",
    )
    atomics_by_thread: Switch = Field(
        default=False,
        description="true: threads of an atomic that meet at a word send a request each; false: one request a line",
    )
    unit_turns: Switch = Field(
        default=False,
        description="true: a warp that waits for a busy execution unit also waits for its own instructions there; "
        "false: only those behind it do",
    )
    end_waits_for_stores: Switch = Field(
        default=True,
        description="true: a warp's end waits until its stores are acknowledged; false: only the kernel's does",
    )

    @model_validator(mode="after")
    def _warps_fit_threads(self) -> Sm:
        if self.threads < 32 * self.warps:
            raise ValueError(f"threads {self.threads} do not hold warps {self.warps} of 32 threads")
        return self


class Kernel(Section):
    """Launches of kernels and thread blocks."""

    launch_latency: Duration = Field(description="from a kernel's launch to its first thread block")
    block_launch_interval: Duration = Field(description="minimum time between two thread-block launches on one SM")
    warp_launch_interval: Duration = Field(
        default=parse_time("0 core_cycles"),
        description="time between two warps that an SM starts, on top of that between thread blocks",
    )
    block_latency: Duration = Field(
        default=parse_time("0 core_cycles"),
        description="overhead of a thread block besides its instructions: first fetch, final drain",
    )
    block_order: Annotated[str, fields.one_of("round_robin")] = Field(
        default="round_robin", description="order in which thread blocks are assigned to SMs with room"
    )
    concurrent: Switch = Field(
        default=True, description="true: kernels of different streams may overlap; false: one kernel at a time"
    )


class L1(Section):
    """The private cache of an SM: write-through, no allocation on a store, invalidated at kernel boundaries."""

    enabled: Switch = Field(default=True, description="false sends every access to the L2")
    size: Annotated[int, fields.size("512 B", "16 MiB")] = Field(description="capacity per SM")
    ways: Annotated[int, fields.count(1, 1024)] = Field(description="associativity")
    line: Annotated[int, fields.size("128 B", "128 B")] = Field(
        default=LINE_BYTES, description="line of four 32 B sectors; no other size is modelled"
    )
    load_to_use: PositiveDuration = Field(description="latency of a hit on an idle machine, issue to use")
    lines_per_cycle: Annotated[int, fields.count(1, 16)] = Field(
        description="lines of one instruction looked up per core cycle"
    )
    sector_banks: Switch = Field(
        default=False,
        description="true: sector n of every line is in bank n, and lines of an instruction that need no bank twice "
        "are looked up together; false: each by itself",
    )
    word_banks: Switch = Field(
        default=False,
        description="true: an instruction takes as many cycles as the busiest of four banks of tags has lines of it, "
        "and at least as many as the busiest of 32 banks of 4 B words has words of it; false: lines by lines_per_cycle",
    )
    mshrs: Annotated[int, fields.count(1, 4096)] = Field(description="outstanding line requests per SM")
    merges: Annotated[int, fields.count(0, 14)] = Field(
        default=0,
        description="accesses that may wait for a line's sectors on their way; a further one blocks the L1 until they "
        "are there; 0: any number",
    )

    @model_validator(mode="after")
    def _sets_are_whole(self) -> L1:
        _check_sets(self.size, 1, self.ways, self.line)
        return self

    @model_validator(mode="after")
    def _banks_are_of_one_kind(self) -> L1:
        if self.word_banks and (self.sector_banks or self.lines_per_cycle != 1):
            raise ValueError(
                "word_banks needs lines_per_cycle 1 and no sector_banks: its banks say what enters in a cycle"
            )
        return self


class Crossbar(Section):
    """SMs to L2 slices; each SM has one port in each direction."""

    request_bandwidth: Rate = Field(description="SM to L2, per SM: store data and requests")
    reply_bandwidth: Rate = Field(description="L2 to SM, per SM: load data")
    queues: Switch = Field(
        default=False,
        description="true: an SM's requests, one a sector, wait in one queue, where the first holds up all others; "
        "false: ports with a bandwidth, where none holds up another",
    )
    turns: Switch = Field(
        default=False,
        description="true: with queues, requests of an SM that come to a slice while another SM's are to come there "
        "leave it every other turn",
    )


class L2(Section):
    """The shared cache: write-back, each of a line's four sectors with its own valid and dirty state."""

    size: Annotated[int, fields.size("4 KiB", "1 GiB")] = Field(description="total capacity")
    slices: Annotated[int, fields.count(1, 1024)] = Field(description="slices, each with its own port")
    ways: Annotated[int, fields.count(1, 1024)] = Field(description="associativity")
    line: Annotated[int, fields.size("128 B", "128 B")] = Field(
        default=LINE_BYTES, description="line of four 32 B sectors; no other size is modelled"
    )
    load_to_use: PositiveDuration = Field(description="latency of a hit on an idle machine, issue to use")
    bandwidth: Rate = Field(description="bandwidth of a slice, in each direction")
    interleave: Annotated[int, fields.size("128 B", "64 KiB")] = Field(
        default=LINE_BYTES, description="neighbouring memory that lies in one slice, a power of two"
    )
    slice_hash: Annotated[str, fields.one_of("mixed", "ipoly")] = Field(
        default="mixed",
        description="what spreads neighbouring memory over the slices: mixed: a hash without structure; ipoly: a "
        "remainder of polynomials, for a power of two of slices, at most 64",
    )
    mshrs: Annotated[int, fields.count(1, 4096)] = Field(description="outstanding line requests per slice")
    atomic_interval: PositiveDuration = Field(
        default=parse_time("1 core_cycles"),
        description="time between two atomic operations of a slice, each on one sector of one instruction",
    )
    rewrite_interval: Duration = Field(
        default=parse_time("0 core_cycles"),
        description="time of a slice's port, besides that of its data, for each sector that a store finds dirty",
    )
    dirty_limit: Annotated[int, fields.size("0 B", "1 GiB")] = Field(
        default=0,
        description="most data that may be dirty, of each set its share; beyond it the oldest are written back; "
        "0 B: all",
    )
    fetch: Annotated[int, fields.size("32 B", "64 B")] = Field(
        default=32,
        description="least that a read miss fetches of uncompressed memory: a 32 B sector, or an aligned 64 B pair",
    )
    partitions: Annotated[int, fields.count(1, 16)] = Field(
        default=1,
        description="equal parts of the slices; an SM reads through its own part, which keeps what lies in the others",
    )
    partition_latency: Duration = Field(
        default=parse_time("0 core_cycles"),
        description="what a request to another partition takes longer, there and back",
    )
    fill_on_memcpy: Switch = Field(description="true: memory copies and fills leave their last bytes in the L2")

    @model_validator(mode="after")
    def _sets_are_whole(self) -> L2:
        if self.fetch not in (32, 64):
            raise ValueError(f"fetch {self.fetch} B is not 32 B or 64 B")
        if self.interleave & self.interleave - 1:
            raise ValueError(f"interleave {self.interleave} B is not a power of two")
        if self.slice_hash == "ipoly" and self.slices not in POLYNOMIALS:
            raise ValueError(f"slices {self.slices} are no power of two up to 64, as slice_hash ipoly needs")
        if self.slices % self.partitions:
            raise ValueError(f"slices {self.slices} are not a multiple of partitions {self.partitions}")
        _check_sets(self.size, self.slices, self.ways, self.line)
        least = SECTOR_BYTES * self.size // (self.ways * self.line)
        if 0 < self.dirty_limit < least:
            raise ValueError(
                f"dirty_limit {format_size(self.dirty_limit)} is less than a sector of each set, {format_size(least)}"
            )
        return self


class MetadataCache(Section):
    """The cache of the entries' 4-bit size states, next to the L2 slices."""

    size: Annotated[int, fields.size("32 B", "64 MiB")] = Field(default=128 * 1024, description="total capacity")
    slices: Annotated[int, fields.count(1, 1024)] = Field(default=32, description="slices")
    ways: Annotated[int, fields.count(1, 1024)] = Field(default=4, description="associativity")
    line: Annotated[int, fields.size("32 B", "128 B")] = Field(
        default=32, description="bytes of a line: 32 B hold the states of 64 entries, one 8 KiB page"
    )
    hit_latency: Duration = Field(
        default=parse_time("0 core_cycles"), description="latency that a lookup adds to an L2 miss or write-back"
    )
    interval: Duration = Field(default=parse_time("1 core_cycles"), description="time between two lookups in a slice")
    overlap: Switch = Field(
        default=True,
        description="true: on a metadata miss, sectors of the device part are fetched in parallel with the metadata",
    )
    pending: Annotated[str, fields.one_of("guess", "wait")] = Field(
        default="guess",
        description="a fill whose metadata line an earlier miss is fetching: guess: as on a miss; wait: for the line",
    )
    cancel: Switch = Field(
        default=False,
        description="true: sectors of a guess that are not needed and that device memory has not begun are cancelled",
    )
    perfect: Switch = Field(
        default=False, description="true: entry sizes are known at no cost, to show what metadata cost"
    )

    @model_validator(mode="after")
    def _sets_are_whole(self) -> MetadataCache:
        if self.line not in (32, 64, 128):
            raise ValueError(f"line {self.line} B is not 32 B, 64 B or 128 B")
        _check_sets(self.size, self.slices, self.ways, self.line)
        return self


class DramTiming(Section):
    """Minimum times between commands of device memory, named as in JESD235."""

    tRCD: Duration = Field(description="activate to column command")
    tRP: Duration = Field(description="precharge to activate")
    tCL: Duration = Field(description="read command to data")
    tCWL: Duration = Field(description="write command to data")
    tRAS: Duration = Field(description="activate to precharge")
    tCCD_S: Duration = Field(description="column to column command, other bank group")
    tCCD_L: Duration = Field(description="column to column command, same bank group")
    tRRD_S: Duration = Field(description="activate to activate, other bank group")
    tRRD_L: Duration = Field(description="activate to activate, same bank group")
    tFAW: Duration = Field(description="four-activate window: minimum time from an activate to the fifth")
    tWR: Duration = Field(description="end of write data to precharge")
    tWTR: Duration = Field(description="end of write data to read command")
    tRTW: Duration = Field(description="read command to write command")
    tRTP: Duration = Field(description="read command to precharge")
    tRFC: Duration = Field(description="duration of a refresh, in which banks are closed")
    tREFI: Duration = Field(description="mean interval between refreshes; 0 switches refresh off")
    tRFCSB: Duration = Field(
        default=parse_time("160 ns"), description="duration of a refresh of one bank, where refresh is single_bank"
    )


class Dram(Section):
    """Device memory."""

    model: Annotated[str, fields.one_of("banked", "simple")] = Field(
        default="banked", description="banked: rows, bank groups, turnarounds, refresh; simple: bandwidth and latency"
    )
    capacity: Annotated[int, fields.size("1 MiB", "1024 TiB")] = Field(description="capacity of device memory")
    channels: Annotated[int, fields.count(1, 1024)] = Field(description="channels of device memory")
    pseudo_channels: Annotated[int, fields.count(1, 16)] = Field(description="pseudo-channels per channel")
    pseudo_channel_bandwidth: Rate = Field(description="peak bandwidth of a pseudo-channel")
    load_to_use: PositiveDuration = Field(
        description="latency of an L2 miss to a closed bank on an idle machine, issue to use"
    )
    row_bytes: Annotated[int, fields.size("32 B", "1 MiB")] = Field(description="size of a row of one bank")
    banks: Annotated[int, fields.count(1, 1024)] = Field(description="banks per pseudo-channel")
    bank_groups: Annotated[int, fields.count(1, 1024)] = Field(description="bank groups per pseudo-channel")
    write_high: Annotated[int, fields.count(1, 128)] = Field(
        description="queued write bursts of a pseudo-channel at which it writes them although reads wait"
    )
    write_low: Annotated[int, fields.count(0, 127)] = Field(
        description="queued write bursts down to which a drain goes while reads wait; as many start one where none does"
    )
    refresh: Annotated[str, fields.one_of("all_banks", "single_bank")] = Field(
        default="all_banks",
        description="all_banks: all banks refresh at once, for tRFC; single_bank: each in its turn, for tRFCSB",
    )
    drains: Annotated[str, fields.one_of("among_reads", "alone")] = Field(
        default="among_reads",
        description="among_reads: reads take slots of the bus that a drain of writes leaves; "
        "alone: they wait until it is over",
    )
    timing: DramTiming

    @model_validator(mode="after")
    def _geometry_is_whole(self) -> Dram:
        if self.banks & (self.banks - 1):
            raise ValueError(f"banks {self.banks} are not a power of two")
        if self.banks % self.bank_groups:
            raise ValueError(f"banks {self.banks} are not a multiple of bank_groups {self.bank_groups}")
        if self.channels * self.pseudo_channels * self.banks > MAX_BANKS:
            raise ValueError(f"channels x pseudo_channels x banks is more than {MAX_BANKS}")
        if self.row_bytes % SECTOR_BYTES:
            raise ValueError(f"row_bytes {self.row_bytes} B are not a multiple of the {SECTOR_BYTES} B burst")
        if self.write_low >= self.write_high:
            raise ValueError(f"write_low {self.write_low} is not less than write_high {self.write_high}")
        return self


class Link(Section):
    """The interconnect to buddy and host memory: two independent directions."""

    bandwidth: Rate = Field(description="bandwidth of each direction")
    load_to_use: PositiveDuration = Field(
        description="latency of an L2 miss to memory across the link on an idle machine, issue to use"
    )
    header: Annotated[int, fields.size("0 B", "4 KiB")] = Field(
        default=0, description="bytes of header per packet; 0 B: bandwidth is goodput"
    )
    packet: Annotated[int, fields.size("32 B", "64 KiB")] = Field(
        default=128, description="maximum payload bytes per header"
    )


class Compression(Section):
    """The (de)compressor of each L2 slice."""

    latency: Duration = Field(
        default=parse_time("11 dram_cycles"), description="latency added to a fill or a write-back"
    )
    interval: Duration = Field(
        default=parse_time("1 dram_cycles"), description="time between two entries in a slice's pipeline"
    )
    whole_raw_entry: Switch = Field(
        default=False, description="true: an incompressible entry moves whole, not only its requested sectors"
    )


class Buddy(Section):
    """The carve-out of buddy memory."""

    carve_out_ratio: Annotated[int, fields.count(0, 64)] = Field(
        default=3, description="buddy memory as a multiple of device memory"
    )
    bypass_1x: Switch = Field(
        default=True, description="true: an allocation with a 1x target is stored uncompressed and needs no metadata"
    )
    eight_byte_state: Switch = Field(
        default=True,
        description="true: metadata distinguish an entry of 1 to 8 B from one of 32 B (16x targets need it)",
    )


def _check_sets(size: int, slices: int, ways: int, line: int) -> None:
    part = slices * ways * line
    if size % part:
        of_slices = f"{slices} slices x " if slices > 1 else ""
        raise ValueError(
            f"size {format_size(size)} is not a whole number of sets of {of_slices}{ways} ways x {line} B: "
            f"expected a multiple of {format_size(part)}"
        )
