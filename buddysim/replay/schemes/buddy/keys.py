"""The sections of machine files that belong to Buddy Compression: its metadata cache and its carve-out."""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator

from buddysim.machine import fields
from buddysim.machine.parts.geometry import check_sets
from buddysim.machine.section import Duration, Section, Switch
from buddysim.machine.units import parse_time

PAPER = "Choukse et al., Buddy Compression (arXiv 1903.02596)"


class MetadataCacheConfig(Section):
    """The cache of the entries' 4-bit size classes, next to the L2 slices."""

    RULES = (
        "`metadata_cache.line` is 32 B, 64 B or 128 B.",
        "`metadata_cache.size` is a multiple of `metadata_cache.slices` x `metadata_cache.ways` x "
        "`metadata_cache.line`.",
    )

    size: Annotated[int, fields.size("32 B", "64 MiB")] = fields.key(
        128 * 1024,
        "metadata-cache capacity of all slices together",
        f"{PAPER}, Tab. 2: 4 KiB per L2 slice; section 3.2 says 64 KB in 8 slices, see docs/reference/machine-keys.md",
        ends=["64 KiB"],
    )
    slices: Annotated[int, fields.count(1, 1024)] = fields.key(
        32,
        "number of metadata-cache slices",
        f"{PAPER}, Tab. 2: one for each of the 32 L2 slices",
    )
    ways: Annotated[int, fields.count(1, 1024)] = fields.key(4, "metadata-cache associativity", f"{PAPER}, Tab. 2")
    line: Annotated[int, fields.size("32 B", "128 B")] = fields.key(
        32,
        "size of a metadata line; 32 B hold the size classes of 64 entries, one metadata page of 8 KiB",
        f"{PAPER}, section 3.2: the states of 64 entries; Tab. 2 lists 128 B lines, see docs/reference/machine-keys.md",
        ends=["128 B"],
    )
    interleaving: Annotated[str, fields.one_of("ideal", "hashed", "own_slice")] = fields.key(
        "hashed",
        "slice of an entry's metadata; hashed: that of a hash of its metadata line, a hop of the crossbar there and "
        "back; own_slice: its own L2 slice, so that a line is in as many slices as its entries; ideal: hashed, "
        "without hops",
        f"{PAPER}, section 3.2: interleaved by the hash of regular addresses, which allows hashed and own_slice; "
        "ideal is for comparison",
        ends=["hashed", "own_slice"],
    )
    hop_latency: Duration = fields.key(
        parse_time("58 core_cycles"),
        "latency of a hop from one L2 slice to another, with metadata_cache.interleaving hashed",
        "assumed: a quarter of the 234 cycles of an L2 hit on a P100, of which the crossbar takes half, both ways",
    )
    hit_latency: Duration = fields.key(
        parse_time("0 core_cycles"),
        "latency that a metadata lookup adds to an L2 miss or write-back; 0: none",
        "assumed: the lookup runs in parallel with the L2's tag lookup; at most it follows it and takes as long as an "
        "L2 slice does, half of the 234 cycles of an L2 hit on a P100",
        ends=["117 core_cycles"],
    )
    lookup_interval: Duration = fields.key(
        parse_time("1 core_cycles"),
        "time between two lookups in a metadata-cache slice",
        "assumed: one lookup per slice and core cycle, as an L2 slice's tag lookup",
    )
    speculative_fetch: Switch = fields.key(
        True,
        "fetch of device sectors on a metadata miss; true: in parallel with the metadata; false: after it",
        f"{PAPER}, section 3.2: device data and metadata are fetched in parallel; section 3.4: a possible optimization",
        ends=["false"],
    )
    on_pending_line: Annotated[str, fields.one_of("speculate", "wait")] = fields.key(
        "speculate",
        "action of a fill whose metadata line is pending; speculate: the same as on a miss; wait: fetch "
        "data after the line has arrived",
        f"{PAPER}, section 3.4, interpreted: speculation needs the target ratio, which is known on every miss; "
        "docs/reference/machine-keys.md",
        ends=["wait"],
    )
    cancel_misspeculated: Switch = fields.key(
        False,
        "handling of unneeded speculative sectors that device memory has not begun to read; true: they are "
        "cancelled; false: they are read",
        "assumed: the paper does not mention it; true is for comparison",
    )
    prefetcher: Annotated[str, fields.member_of("metadata prefetcher")] = fields.key(
        "none", "prefetcher of metadata lines", "assumed: the paper does not mention one"
    )
    perfect: Switch = fields.key(
        False,
        "cost of metadata; true: entry sizes are known without lookups and traffic; false: as modelled",
        "as the paper; true is for comparison",
    )

    @model_validator(mode="after")
    def _size_is_a_multiple_of_sets(self) -> MetadataCacheConfig:
        if self.line not in (32, 64, 128):
            raise ValueError(f"line: {self.line} B: expected 32 B, 64 B or 128 B")
        check_sets(self.size, self.slices, self.ways, self.line)
        return self


class BuddyConfig(Section):
    """The carve-out of buddy memory."""

    carve_out_ratio: Annotated[int, fields.count(0, 64)] = fields.key(
        3,
        "size of buddy memory as a multiple of device memory",
        f"{PAPER}: buddy memory is three times device memory, for ratios up to 4x",
    )
    bypass_1x: Switch = fields.key(
        True,
        "storage of allocations with target ratio 1x; true: uncompressed and without metadata; false: as any other",
        "assumed: incompressible data need neither compressor nor metadata",
    )
    eight_byte_class: Switch = fields.key(
        True,
        "size class for entries of 1 to 8 B, which the target ratio 16x needs; true: the metadata have it; "
        "false: such entries count as 32 B",
        "assumed: without it an entry of 1 to 8 B can't be told from one of 32 B",
    )
    raw_sectors: Annotated[str, fields.one_of("whole", "single")] = fields.key(
        "single",
        "sectors moved of a raw entry that overflows its target ratio; whole: all of them, through the decompressor; "
        "single: the requested ones, and those that were fetched speculatively",
        f"assumed: {PAPER} does not say how such an entry is stored, but its metadata say that it is raw",
    )
