"""The L2 in the engine's units: whole picoseconds and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.compress import ENTRY_BYTES, SECTOR_BYTES
from buddysim.replay.port_costs import COST_PER_PS, port_cost

if TYPE_CHECKING:
    from buddysim.machine import Machine


def l2_numbers(m: Machine) -> dict[str, object]:
    """The L2's numbers by the engine's names."""
    slices_per_channel, pseudo_per_slice = _channels_of_slices(m)
    return {
        "slice_cost": port_cost(SECTOR_BYTES, m.bytes_per_s(m.l2.bandwidth)),
        "dirty_store_cost": m.ps(m.l2.dirty_store_interval) * COST_PER_PS,
        "atomic_cost": m.ps(m.l2.atomic_interval) * COST_PER_PS,
        "slices": m.l2.slices,
        "interleave_shift": (m.l2.interleave_granularity // ENTRY_BYTES).bit_length() - 1,
        "slices_per_channel": slices_per_channel,
        "pseudo_per_slice": pseudo_per_slice,
        "l2_sets": m.l2.size // (m.l2.slices * m.l2.ways * ENTRY_BYTES),
        "l2_ways": m.l2.ways,
        "l2_mshrs": m.l2.mshrs,
        "l2_writeback_buffer": m.l2.writeback_buffer,
        "l2_partitions": m.l2.partitions,
        "remote_latency_ps": m.ps(m.l2.partition_latency),
        "l2_fetch_pairs": m.l2.fetch_granularity == 2 * SECTOR_BYTES,
        "l2_max_dirty_sectors": m.l2.max_dirty * m.l2.ways * (ENTRY_BYTES // SECTOR_BYTES) // m.l2.size,
    }


def _channels_of_slices(m: Machine) -> tuple[int, int]:
    """Return the L2 slices per channel, and the pseudo-channels behind a slice."""
    channels, pseudo = m.dram.channels, m.dram.pseudo_channels
    if m.l2.slices % channels == 0:
        return m.l2.slices // channels, pseudo
    if channels % m.l2.slices == 0:
        return 1, pseudo * channels // m.l2.slices
    raise BuddysimError(
        f"{m.name}: l2.slices: {m.l2.slices} slices and {channels} channels: expected one to be a multiple of the other"
    )
