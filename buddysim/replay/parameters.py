"""A machine in the engine's units: whole picoseconds, bytes and counts."""

from __future__ import annotations

from fractions import Fraction

from buddysim.base.errors import BuddysimError
from buddysim.compress import ENTRY_BYTES, SECTOR_BYTES
from buddysim.machine import Machine
from buddysim.replay.dram.numbers import dram_numbers
from buddysim.replay.l1.numbers import l1_numbers
from buddysim.replay.link.numbers import link_numbers
from buddysim.replay.port_costs import COST_PER_PS, port_cost, sector_ps
from buddysim.replay.sm.numbers import sm_numbers

#: Pages of 2 KiB for reservations more than 512 buckets of a port or 16,384 slots of a table ahead: at most 2 GiB.
HORIZON_PAGES = 1 << 20


def engine_numbers(machine: Machine, compute_gap_scale: Fraction) -> dict[str, object]:
    """The machine's numbers by the engine's names.

    Parameters
    ----------
    machine : the machine
    compute_gap_scale : factor on every compute gap and critical path of the trace

    Returns
    -------
    dict of int, and the DRAM timing (ps) as a dict under `dram_timing`

    Raises
    ------
    BuddysimError : a shape that the engine does not simulate
    """
    numbers = sm_numbers(machine) | l1_numbers(machine) | _crossbar_and_l2_numbers(machine)
    numbers |= _compression_numbers(machine) | dram_numbers(machine) | link_numbers(machine)
    return numbers | {
        "compute_gap_scale_num": compute_gap_scale.numerator,
        "compute_gap_scale_den": compute_gap_scale.denominator,
        "horizon_pages": HORIZON_PAGES,
    }


def _crossbar_and_l2_numbers(m: Machine) -> dict[str, object]:
    l2 = m.ps(m.l2.load_to_use)
    slices_per_channel, pseudo_per_slice = _channels_of_slices(m)
    return {
        "request_ps": l2 // 2,
        "reply_ps": l2 - l2 // 2,
        "sector_ps": max(sector_ps(m, m.crossbar.reply_bandwidth), sector_ps(m, m.l2.bandwidth)),
        "reply_cost": port_cost(SECTOR_BYTES, m.bytes_per_s(m.crossbar.reply_bandwidth)),
        "request_cost": port_cost(SECTOR_BYTES, m.bytes_per_s(m.crossbar.request_bandwidth)),
        "crossbar_input_queued": m.crossbar.input_queued,
        "interleave_requesters": m.crossbar.interleave_requesters,
        "queue_sector_ps": sector_ps(m, m.crossbar.request_bandwidth),
        "reply_sector_ps": sector_ps(m, m.crossbar.reply_bandwidth),
        "slice_sector_ps": sector_ps(m, m.l2.bandwidth),
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


def _compression_numbers(m: Machine) -> dict[str, object]:
    return {
        "compressor_ps": m.ps(m.compression.latency),
        "compressor_cost": m.ps(m.compression.initiation_interval) * COST_PER_PS,
        "fetch_whole_raw_entry": m.compression.fetch_whole_raw_entry,
        "eight_byte_class": m.buddy.eight_byte_class,
        "speculate_on_miss": m.metadata_cache.speculative_fetch,
        "speculate_on_pending": m.metadata_cache.speculative_fetch and m.metadata_cache.on_pending_line == "speculate",
        "cancel_misspeculated": m.metadata_cache.cancel_misspeculated,
        "perfect_metadata": m.metadata_cache.perfect,
        "metadata_ps": m.ps(m.metadata_cache.hit_latency),
        "metadata_cost": m.ps(m.metadata_cache.lookup_interval) * COST_PER_PS,
        "metadata_slices": m.metadata_cache.slices,
        "metadata_ways": m.metadata_cache.ways,
        "metadata_sets": m.metadata_cache.size
        // (m.metadata_cache.slices * m.metadata_cache.ways * m.metadata_cache.line),
        "metadata_line_sectors": m.metadata_cache.line // SECTOR_BYTES,
    }
