"""The sections of Buddy Compression: its metadata cache and its carve-out."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from buddysim.machine import fields
from buddysim.machine.parts.geometry import check_sets
from buddysim.machine.section import Duration, Section, Switch
from buddysim.machine.units import parse_time


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
        check_sets(self.size, self.slices, self.ways, self.line)
        return self


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
