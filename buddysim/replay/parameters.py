"""A machine in the engine's units: whole picoseconds, bytes and counts."""

from __future__ import annotations

from fractions import Fraction

from buddysim.compress import SECTOR_BYTES
from buddysim.machine import Machine
from buddysim.replay.crossbar.numbers import crossbar_numbers
from buddysim.replay.dram.numbers import dram_numbers
from buddysim.replay.l1.numbers import l1_numbers
from buddysim.replay.l2.numbers import l2_numbers
from buddysim.replay.link.numbers import link_numbers
from buddysim.replay.port_costs import COST_PER_PS
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
    numbers = sm_numbers(machine) | l1_numbers(machine) | crossbar_numbers(machine) | l2_numbers(machine)
    numbers |= _compression_numbers(machine) | dram_numbers(machine) | link_numbers(machine)
    return numbers | {
        "compute_gap_scale_num": compute_gap_scale.numerator,
        "compute_gap_scale_den": compute_gap_scale.denominator,
        "horizon_pages": HORIZON_PAGES,
    }


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
