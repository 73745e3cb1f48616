"""The section of the streaming multiprocessors."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from buddysim.machine import fields
from buddysim.machine.section import Duration, PositiveDuration, Section, Switch
from buddysim.machine.units import parse_time


class SmConfig(Section):
    """The streaming multiprocessors (SMs) and their occupancy limits."""

    RULES = ("`sm.threads` is at least 32 times `sm.warps`.",)

    count: Annotated[int, fields.count(1, 1024)] = Field(description="number of SMs")
    schedulers: Annotated[int, fields.count(1, 16)] = Field(
        description="warp schedulers per SM; warp n belongs to scheduler n modulo this number"
    )
    policy: Annotated[str, fields.member_of("warp scheduler")] = fields.key(
        "gto",
        "policy of the warp schedulers, which chooses the warp that issues",
        "assumed: not published; the choice of Choukse et al. (arXiv 1903.02596)",
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
    barrier_latency: Duration = fields.key(
        parse_time("0 core_cycles"),
        "time from the last arrival at a barrier to the next instructions of its warps, in addition to the "
        "issue interval; 0: barriers release at once",
        "assumed: none; published for Volta (gv100), not looked up for others",
    )
    barrier_arrival_interval: Duration = fields.key(
        parse_time("0 core_cycles"),
        "time between two barrier arrivals of one SM; 0: any number of warps arrive at once",
        "assumed: none; measured for Turing, taken for Volta (gv100)",
    )
    icache_miss_latency: Duration = fields.key(
        parse_time("0 core_cycles"),
        "latency of the first fetch of an instruction-cache line by an SM in a kernel; 0: instruction "
        "fetches always hit",
        "assumed: none, code is in the caches when a kernel starts, as where it has run before",
    )
    icache_prefetch_lines: Annotated[int, fields.count(0, 64)] = fields.key(
        0,
        "instruction-cache lines prefetched after the one that a warp reaches; 0: no prefetch",
        "no code is fetched",
    )
    blocking_atomics: Switch = fields.key(
        False,
        "waiting for atomics whose result is unused; true: the warp blocks until the atomic returns; "
        "false: the warp continues, as after any load",
        "assumed: a warp goes on until it uses what an atomic returns, as past a load",
    )
    split_conflicting_atomics: Switch = fields.key(
        False,
        "requests of an atomic instruction whose lanes have one address; true: one request for each such "
        "lane; false: one request per line",
        "assumed: hardware sends an instruction's atomics on a line together",
    )
    stall_on_busy_unit: Switch = fields.key(
        False,
        "waiting of a warp whose execution unit is busy; true: its own initiation intervals delay it, too; "
        "false: these delay only the warps after it",
        "assumed, as measured results were made; true was checked against Accel-Sim alone",
    )
    exit_waits_for_stores: Switch = fields.key(
        True,
        "waiting of an exiting warp for the acknowledgements of its stores; true: the warp waits; false: "
        "only the end of the kernel waits",
        "assumed: the choice of the model; STREAM's init on real GPUs says that blocks end before, its other "
        "kernels that they do not (docs/validation/hardware.md)",
    )

    @model_validator(mode="after")
    def _warps_fit_threads(self) -> SmConfig:
        if self.threads < 32 * self.warps:
            raise ValueError(f"threads: {self.threads} is less than warps x 32: expected at least {32 * self.warps}")
        return self
