"""What a run's allocations occupy, and whether the machine has room for it."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.base.errors import BuddysimError
from buddysim.buddy import Targets
from buddysim.compress import ENTRY_BYTES
from buddysim.machine import Machine
from buddysim.replay.layout import Layout

METADATA_ENTRIES_PER_BYTE = 2


@dataclass(frozen=True)
class Footprint:
    """Bytes by where they lie, at the moment of the run at which most are allocated.

    Attributes
    ----------
    allocated : bytes of the allocations that the program keeps in device memory
    device : bytes of device memory that they occupy under the targets
    buddy : bytes of the carve-out that they occupy
    metadata : bytes of device memory for their entries' metadata (4 bits each: Buddy Compression, section 3.2)
    host : bytes of the allocations in host memory
    """

    allocated: int = 0
    device: int = 0
    buddy: int = 0
    metadata: int = 0
    host: int = 0

    @property
    def ratio(self) -> float:
        """Effective compression ratio: bytes allocated / bytes of device memory that they occupy."""
        return self.allocated / self.device if self.device else 1.0


def footprint_of(layout: Layout, targets: Targets | None, machine: Machine, all_on_host: bool) -> Footprint:
    """The footprint of the allocations of a layout.

    Parameters
    ----------
    layout : the allocations
    targets : their target ratios; None where nothing is compressed for capacity
    machine : whether 1x allocations have metadata
    all_on_host : every allocation is pinned in host memory
    """
    peak = Footprint()
    for moment in sorted({placed.allocation.born for placed in layout.placed}):
        sums = dict.fromkeys(("allocated", "device", "buddy", "metadata", "host"), 0)
        for placed in layout.placed:
            allocation, entries = placed.allocation, placed.end_entry - placed.first_entry
            if allocation.born > moment or (allocation.died is not None and allocation.died <= moment):
                continue
            if allocation.space == "host" or all_on_host:
                sums["host"] += entries * ENTRY_BYTES
                continue
            target = targets.of(allocation.index) if targets else None
            kept = target.device_bytes_per_entry if target else ENTRY_BYTES
            sums["allocated"] += entries * ENTRY_BYTES
            sums["device"] += entries * kept
            sums["buddy"] += entries * (ENTRY_BYTES - kept)
            if target and not (kept == ENTRY_BYTES and machine.buddy.bypass_1x):
                sums["metadata"] += -(-entries // METADATA_ENTRIES_PER_BYTE)
        if sums["allocated"] + sums["host"] > peak.allocated + peak.host:
            peak = Footprint(**sums)
    return peak


def check_capacity(footprint: Footprint, machine: Machine, path: object) -> None:
    """Raises BuddysimError, by how much, where device memory or the carve-out is too small."""
    capacity = machine.dram.capacity
    for where, needed, available in (
        ("device memory", footprint.device + footprint.metadata, capacity),
        ("carve-out", footprint.buddy, machine.buddy.carve_out_ratio * capacity),
    ):
        if needed > available:
            raise BuddysimError(
                f"{path}: {where} of {machine.name}: the targets need {needed} B, there are {available} B: "
                f"{needed - available} B too much"
            )
