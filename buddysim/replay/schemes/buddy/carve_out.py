"""Where Buddy Compression puts allocations, and the device memory, buddy memory and metadata that they take."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from buddysim.compress import ENTRY_BYTES
from buddysim.replay.primitives.kinds import Placement
from buddysim.replay.schemes.buddy.keys import BuddyConfig

if TYPE_CHECKING:
    from buddysim.buddy import ProfileOptions
    from buddysim.buddy.targets import Target
    from buddysim.machine import Machine

METADATA_BYTES = Fraction(1, 2)  # of an entry, 4 bits: Buddy Compression, section 3.2


def placement(machine: Machine, target: Target) -> tuple[Placement, int]:
    """Return the memory of an allocation, and the device sectors of each of its entries."""
    return (Placement.DEVICE, 4) if _is_bypassed(machine, target) else (Placement.COMPRESSED, target.device_sectors)


def entry_bytes(machine: Machine, target: Target) -> dict[str, Fraction]:
    """Return the bytes of each kind that an entry takes."""
    device = target.device_bytes_per_entry
    return {
        "device": Fraction(device),
        "buddy": Fraction(ENTRY_BYTES - device),
        "metadata": Fraction(0) if _is_bypassed(machine, target) else METADATA_BYTES,
    }


def capacities(machine: Machine) -> dict[str, int]:
    """Return the size of buddy memory."""
    return {"carve-out": machine.section_of(BuddyConfig).carve_out_ratio * machine.dram.capacity}


def profile_options(options: ProfileOptions, machine: Machine) -> ProfileOptions:
    """Return the options of a profile for a machine: its metadata say whether entries of 8 B count as such."""
    return replace(options, eight_byte_class=machine.section_of(BuddyConfig).eight_byte_class)


def _is_bypassed(machine: Machine, target: Target) -> bool:
    return target.device_bytes_per_entry == ENTRY_BYTES and machine.section_of(BuddyConfig).bypass_1x
