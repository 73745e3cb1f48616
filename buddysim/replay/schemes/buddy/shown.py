"""What results and screens say of Buddy Compression beyond the counters of its own code."""

from __future__ import annotations

from buddysim.replay.component.shown import ShownRow

#: Kinds of bytes that an entry takes in addition to its device data, and where they lie.
FOOTPRINT = {"buddy": "carve-out", "metadata": "device memory"}

#: Counters that the engine counts for the scheme: unit, colon, definition.
ENGINE_COUNTERS = {
    "device.channel_metadata_read_bytes": "B: Metadata lines read: a list with a value for each pseudo-channel.",
    "device.channel_metadata_write_bytes": (
        "B: Metadata lines written, queued writes included: a list with a value for each pseudo-channel."
    ),
    "queueing.metadata_port_histogram": (
        "lookups: Histogram of the waits of metadata lookups for the port of their metadata cache slice "
        "(element b counts 2^b to 2^(b+1) - 1 ps; null without `--queueing`)."
    ),
    "footprint.buddy_bytes": "B: Peak of the buddy memory reserved, whether or not entries overflow into it.",
    "footprint.metadata_bytes": (
        "B: Metadata of compressed entries, half a byte each, at the time of `footprint.device_bytes`."
    ),
    "footprint.mean_buddy_bytes": "B: Mean over simulated time of the buddy memory reserved.",
    "footprint.mean_metadata_bytes": "B: Mean over simulated time of the metadata of compressed entries.",
    "per_allocation.buddy_accesses": (
        "accesses: Fills and write-backs of the allocation's entries that access buddy memory."
    ),
    "per_allocation.buddy_access_fraction": (
        "fraction: Buddy accesses of the allocation divided by its fills and write-backs, 0 to 1; 0 if there are none."
    ),
}

SHOWN = (
    ShownRow(
        "memory footprint",
        "buddy memory (reserved)",
        "bytes",
        ("footprint.buddy_bytes",),
        "Bytes reserved behind the link for entries that overflow their target, whether or not they do.",
    ),
    ShownRow(
        "memory footprint",
        "buddy-access fraction",
        "fraction",
        ("buddy.access_fraction",),
        "Fraction of the L2's fills and write-backs that access buddy memory.",
        note="fills, write-backs",
        where="footprint.buddy_bytes",
    ),
    ShownRow(
        "DRAM traffic",
        "metadata",
        "bytes",
        ("device.metadata_bytes",),
        "Bytes of compression metadata read and written.",
    ),
    ShownRow(
        "hit rates",
        "metadata cache",
        "hits",
        ("metadata.hits", "metadata.mshr_merges", "metadata.accesses"),
        "Metadata lookups that hit, and those that merge with a miss in flight.",
    ),
    ShownRow(
        "waiting time",
        "metadata cache port",
        "wait",
        ("queueing.metadata_port_histogram",),
        "Waiting time of lookups for the metadata cache.",
    ),
    ShownRow(
        "allocations",
        "target",
        "text",
        ("per_allocation.target",),
        "Target ratio of the allocation, chosen by profiling or given by a file.",
    ),
    ShownRow(
        "allocations",
        "buddy fraction",
        "fraction",
        ("per_allocation.buddy_access_fraction",),
        "Fraction of the allocation's fills and write-backs that access buddy memory.",
    ),
)


def allocation_counters(fills: int, writebacks: int, overflow_accesses: int) -> dict[str, float]:
    """Return the counters of an allocation."""
    moves = fills + writebacks
    return {
        "buddy_accesses": overflow_accesses,
        "buddy_access_fraction": overflow_accesses / moves if moves else 0.0,
    }
