"""The section of the L1 caches."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from buddysim.machine import fields
from buddysim.machine.parts.geometry import LINE_BYTES, check_sets
from buddysim.machine.section import PositiveDuration, Section, Switch


class L1Config(Section):
    """The private cache of an SM: write-through, no allocation on a store, invalidated at kernel boundaries."""

    RULES = ("`l1.size` is a multiple of `l1.ways` x `l1.line`; the number of sets need not be a power of two.",)

    enabled: Switch = fields.key(
        True,
        "use of the L1; true: loads look it up; false: every access goes to the L2",
        "assumed: loads are cached in the L1, as NVIDIA's white papers say from Volta on",
    )
    size: Annotated[int, fields.size("512 B", "16 MiB")] = Field(description="L1 capacity per SM")
    ways: Annotated[int, fields.count(1, 1024)] = Field(description="L1 associativity")
    line: Annotated[int, fields.size("128 B", "128 B")] = fields.key(
        LINE_BYTES,
        "size of an L1 line of four 32 B sectors; 128 B is the only size modelled",
        "Choukse et al. (arXiv 1903.02596), Tab. 2; Jia et al., arXiv 1804.06826 (Volta), "
        "1903.07486 (Turing); assumed for others",
    )
    load_to_use: PositiveDuration = Field(description="latency of an L1 hit on an idle machine, from issue to use")
    lines_per_cycle: Annotated[int, fields.count(1, 16)] = Field(
        description="lines of one instruction that the L1 looks up per core cycle"
    )
    bank_conflicts: Annotated[str, fields.member_of("L1 banking")] = fields.key(
        "none",
        "banks of the L1, which decide when the lines of an instruction enter it",
        "assumed: the banks of the L1 are not published, and no strides were measured",
    )
    mshrs: Annotated[int, fields.count(1, 4096)] = Field(description="outstanding line requests (MSHRs) per L1")
    max_mshr_merges: Annotated[int, fields.count(0, 14)] = fields.key(
        0,
        "maximum accesses that merge with one pending line; the next one blocks the L1 until the line has "
        "arrived; 0: unlimited",
        "assumed: any number: the limit is not published",
    )

    @model_validator(mode="after")
    def _size_is_a_multiple_of_sets(self) -> L1Config:
        check_sets(self.size, 1, self.ways, self.line)
        return self
