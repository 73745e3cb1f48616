"""A machine in the engine's units: whole picoseconds, bytes and counts."""

from __future__ import annotations

from fractions import Fraction

from buddysim.base.errors import BuddysimError
from buddysim.compress import ENTRY_BYTES, SECTOR_BYTES
from buddysim.machine import Machine

COST_PER_PS = 1024  # port.FINE_BITS
MAX_CCD_SLOTS = 56  # the reservation table of the bus is searched in windows of 57
MIN_BURST_PS = 2
MAX_WARPS = 64
#: Lines that may wait in front of an L1 before warps stop issuing to it; assumed: one fully divergent instruction.
L1_QUEUE_LINES = 32
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
    numbers = _sm_numbers(machine) | _l1_numbers(machine) | _crossbar_and_l2_numbers(machine)
    numbers |= _compression_numbers(machine) | _dram_numbers(machine) | _link_numbers(machine)
    return numbers | {
        "compute_gap_scale_num": compute_gap_scale.numerator,
        "compute_gap_scale_den": compute_gap_scale.denominator,
        "horizon_pages": HORIZON_PAGES,
    }


def _sm_numbers(m: Machine) -> dict[str, object]:
    if m.sm.warps > MAX_WARPS:
        raise BuddysimError(f"{m.name}: sm.warps: {m.sm.warps} warps per SM: expected at most {MAX_WARPS}")
    return {
        "sms": m.sm.count,
        "schedulers": m.sm.schedulers,
        "round_robin": m.sm.policy == "lrr",
        "blocking_atomics": m.sm.blocking_atomics,
        "split_conflicting_atomics": m.sm.split_conflicting_atomics,
        "stall_on_busy_unit": m.sm.stall_on_busy_unit,
        "exit_waits_for_stores": m.sm.exit_waits_for_stores,
        "sm_warps": m.sm.warps,
        "sm_blocks": m.sm.blocks,
        "sm_threads": m.sm.threads,
        "sm_registers": m.sm.registers,
        "sm_shared": m.sm.shared_memory,
        "block_interval_ps": m.ps(m.kernel.block_launch_interval),
        "block_overhead_ps": m.ps(m.kernel.block_overhead),
        "warp_interval_ps": m.ps(m.kernel.warp_launch_interval),
        "cycle_ps": _core_cycle_ps(m),
        "pipeline_ps": m.ps(m.sm.pipeline_latency),
        "issue_interval_ps": m.ps(m.sm.issue_interval),
        "assumed_instruction_ps": m.ps(m.sm.assumed_instruction_latency),
        "barrier_ps": m.ps(m.sm.issue_interval) + m.ps(m.sm.barrier_latency),
        "barrier_arrival_interval_ps": m.ps(m.sm.barrier_arrival_interval),
        "icache_miss_ps": m.ps(m.sm.icache_miss_latency),
        "icache_prefetch_lines": m.sm.icache_prefetch_lines,
    }


def _l1_numbers(m: Machine) -> dict[str, object]:
    line_ps = max(1, _core_cycle_ps(m) // m.l1.lines_per_cycle)
    return {
        "l1_enabled": m.l1.enabled,
        "l1_sets": m.l1.size // (m.l1.ways * ENTRY_BYTES),
        "l1_ways": m.l1.ways,
        "l1_hit_ps": m.ps(m.l1.load_to_use),
        "l1_line_ps": line_ps,
        "l1_max_mshr_merges": m.l1.max_mshr_merges,
        "l1_mshrs": m.l1.mshrs,
        "l1_queue_ps": L1_QUEUE_LINES * line_ps,
    }


def _crossbar_and_l2_numbers(m: Machine) -> dict[str, object]:
    l2 = m.ps(m.l2.load_to_use)
    slices_per_channel, pseudo_per_slice = _channels_of_slices(m)
    return {
        "request_ps": l2 // 2,
        "reply_ps": l2 - l2 // 2,
        "sector_ps": max(_sector_ps(m, m.crossbar.reply_bandwidth), _sector_ps(m, m.l2.bandwidth)),
        "reply_cost": _cost(SECTOR_BYTES, m.bytes_per_s(m.crossbar.reply_bandwidth)),
        "request_cost": _cost(SECTOR_BYTES, m.bytes_per_s(m.crossbar.request_bandwidth)),
        "crossbar_input_queued": m.crossbar.input_queued,
        "interleave_requesters": m.crossbar.interleave_requesters,
        "queue_sector_ps": _sector_ps(m, m.crossbar.request_bandwidth),
        "reply_sector_ps": _sector_ps(m, m.crossbar.reply_bandwidth),
        "slice_sector_ps": _sector_ps(m, m.l2.bandwidth),
        "slice_cost": _cost(SECTOR_BYTES, m.bytes_per_s(m.l2.bandwidth)),
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


def _dram_numbers(m: Machine) -> dict[str, object]:
    for key, count in (("banks", m.dram.banks), ("bank_groups", m.dram.bank_groups)):
        if count & (count - 1):
            raise BuddysimError(f"{m.name}: dram.{key}: {count}: expected a power of two")
    n_pseudo = m.dram.channels * m.dram.pseudo_channels
    timing, burst = m.dram.timing, _sector_ps(m, m.dram.pseudo_channel_bandwidth)
    if burst < MIN_BURST_PS:
        raise BuddysimError(f"{m.name}: dram: 32 B in less than {MIN_BURST_PS} ps: expected a slower pseudo-channel")
    first_burst = m.ps(timing.tRCD) + m.ps(timing.tCL) + burst
    around_dram = m.ps(m.dram.load_to_use) - m.ps(m.l2.load_to_use) - first_burst
    return {
        "dram_banked": m.dram.model == "banked",
        "dram_pseudo": n_pseudo,
        "dram_banks": m.dram.banks,
        "dram_write_high_watermark": m.dram.write_high_watermark,
        "dram_write_low_watermark": m.dram.write_low_watermark,
        "dram_burst_ps": burst,
        "dram_burst_cost": burst * COST_PER_PS,
        "dram_before_ps": around_dram // 2,
        "dram_after_ps": around_dram - around_dram // 2,
        "dram_simple_ps": first_burst,
        "dram_timing": _dram_timing(m, burst),
        "dram_single_bank_refresh": m.dram.refresh == "single_bank",
        "dram_exclusive_drains": m.dram.write_drain == "exclusive",
        "dram_bank_groups": m.dram.bank_groups,
        "row_stripe_entries": max(1, m.dram.row_bytes * n_pseudo * m.dram.bank_groups // ENTRY_BYTES),
    }


def _dram_timing(m: Machine, burst: int) -> dict[str, int]:
    timing = m.dram.timing
    ccd_slots = max(1, round(m.ps(timing.tCCD_L) / burst))
    if ccd_slots > MAX_CCD_SLOTS:
        raise BuddysimError(
            f"{m.name}: dram.timing.tCCD_L: {timing.tCCD_L}, as long as {ccd_slots} bursts: "
            f"expected at most {MAX_CCD_SLOTS}"
        )
    return {
        "rcd": m.ps(timing.tRCD),
        "rp": m.ps(timing.tRP),
        "cl": m.ps(timing.tCL),
        "cwl": m.ps(timing.tCWL),
        "ras": m.ps(timing.tRAS),
        "ccd_slots": ccd_slots,
        "act_interval": max(m.ps(timing.tRRD_S), m.ps(timing.tFAW) // 4),
        "wr": m.ps(timing.tWR),
        "read_to_write": max(0, m.ps(timing.tRTW) + m.ps(timing.tCWL) - m.ps(timing.tCL) - burst),
        "write_to_read": m.ps(timing.tWTR) + m.ps(timing.tCL),
        "rtp": m.ps(timing.tRTP),
        "rfc": m.ps(timing.tRFCSB if m.dram.refresh == "single_bank" else timing.tRFC) if m.ps(timing.tREFI) else 0,
        "refi": m.ps(timing.tREFI),
    }


def _link_numbers(m: Machine) -> dict[str, object]:
    byte_cost = Fraction(10**12 * COST_PER_PS, m.bytes_per_s(m.link.bandwidth))
    write_bytes_per_s = m.bytes_per_s(m.link.write_bandwidth if m.link.write_bandwidth.amount else m.link.bandwidth)
    write_cost = Fraction(10**12 * COST_PER_PS, write_bytes_per_s)
    sector = int(-(-(SECTOR_BYTES + m.link.header_size) * byte_cost // 1)) // COST_PER_PS
    return {
        "link_byte_cost": (byte_cost.numerator, byte_cost.denominator),
        "link_bytes_per_s": m.bytes_per_s(m.link.bandwidth),
        "link_write_byte_cost": (write_cost.numerator, write_cost.denominator),
        "link_write_bytes_per_s": write_bytes_per_s,
        "link_read_ps": max(0, m.ps(m.link.load_to_use) - m.ps(m.l2.load_to_use) - sector),
        "link_header_bytes": m.link.header_size,
        "link_max_payload_bytes": m.link.max_payload,
    }


def _core_cycle_ps(m: Machine) -> int:
    return _ps(1 / Fraction(m.clock.core.hz))


def _ps(seconds: Fraction) -> int:
    return max(1, int(seconds * 10**12 + Fraction(1, 2)))


def _cost(size: int, bytes_per_s: int) -> int:
    """Return the port time of `size` bytes, rounded up, so that no port exceeds its bandwidth."""
    return -(-size * 10**12 * COST_PER_PS // bytes_per_s)


def _sector_ps(machine: Machine, bandwidth: object) -> int:
    """Return the time of one 32 B sector in whole picoseconds, rounded up."""
    return -(-SECTOR_BYTES * 10**12 // machine.bytes_per_s(bandwidth))  # type: ignore[arg-type]
