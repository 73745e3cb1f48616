"""The metadata cache in the engine's units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.compress import SECTOR_BYTES
from buddysim.replay.port_costs import COST_PER_PS
from buddysim.replay.schemes.buddy.keys import MetadataCacheConfig

if TYPE_CHECKING:
    from buddysim.machine import Machine


def metadata_numbers(machine: Machine) -> dict[str, int | str]:
    """Return what `metadata_init` takes, and whether misspeculated reads are cancelled."""
    cache = machine.section_of(MetadataCacheConfig)
    return {
        "cancel_misspeculated": cache.cancel_misspeculated,
        "speculate_on_miss": cache.speculative_fetch,
        "speculate_on_pending": cache.speculative_fetch and cache.on_pending_line == "speculate",
        "perfect_metadata": cache.perfect,
        "metadata_ps": machine.ps(cache.hit_latency),
        "metadata_interleaving": cache.interleaving,
        "metadata_hop_ps": machine.ps(cache.hop_latency),
        "metadata_cost": machine.ps(cache.lookup_interval) * COST_PER_PS,
        "metadata_slices": cache.slices,
        "metadata_ways": cache.ways,
        "metadata_sets": cache.size // (cache.slices * cache.ways * cache.line),
        "metadata_line_sectors": cache.line // SECTOR_BYTES,
    }
