"""Device memory in the engine's units: whole picoseconds, bytes and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.compress import ENTRY_BYTES
from buddysim.replay.port_costs import sector_ps

if TYPE_CHECKING:
    from buddysim.machine import Machine

MAX_CCD_SLOTS = 56  # the reservation table of the bus is searched in windows of 57
MIN_BURST_PS = 2


def dram_numbers(m: Machine) -> dict[str, object]:
    """Device memory's numbers by the engine's names: its timing (ps) as a dict under `dram_timing`."""
    for key, count in (("banks", m.dram.banks), ("bank_groups", m.dram.bank_groups)):
        if count & (count - 1):
            raise BuddysimError(f"{m.name}: dram.{key}: {count}: expected a power of two")
    n_pseudo = m.dram.channels * m.dram.pseudo_channels
    timing, burst = m.dram.timing, sector_ps(m, m.dram.pseudo_channel_bandwidth)
    if burst < MIN_BURST_PS:
        raise BuddysimError(f"{m.name}: dram: 32 B in less than {MIN_BURST_PS} ps: expected a slower pseudo-channel")
    first_burst = m.ps(timing.tRCD) + m.ps(timing.tCL) + burst
    around_dram = m.ps(m.dram.load_to_use) - m.ps(m.l2.load_to_use) - first_burst
    return {
        "dram_pseudo": n_pseudo,
        "dram_banks": m.dram.banks,
        "dram_write_high_watermark": m.dram.write_high_watermark,
        "dram_write_low_watermark": m.dram.write_low_watermark,
        "dram_burst_ps": burst,
        "dram_before_ps": around_dram // 2,
        "dram_after_ps": around_dram - around_dram // 2,
        "dram_timing": _timing(m, burst),
        "dram_bank_groups": m.dram.bank_groups,
        "row_stripe_entries": max(1, m.dram.row_bytes * n_pseudo * m.dram.bank_groups // ENTRY_BYTES),
    }


def _timing(m: Machine, burst: int) -> dict[str, int]:
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
        "rfc": m.ps(m.policies()["DRAM refresh"].duration(timing)) if m.ps(timing.tREFI) else 0,
        "refi": m.ps(timing.tREFI),
    }
