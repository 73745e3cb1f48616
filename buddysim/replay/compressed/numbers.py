"""Compression in the engine's units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.replay.port_costs import COST_PER_PS

if TYPE_CHECKING:
    from buddysim.machine import Machine


def compressed_numbers(machine: Machine, eight_byte_class: bool, single_raw_sectors: bool = False) -> dict[str, int]:
    """Return what `entries_init` takes.

    Parameters
    ----------
    machine : the machine
    eight_byte_class : whether entries of 1 to 8 B count as such, not as 32 B
    single_raw_sectors : whether sectors of raw entries that overflow their target are accessed one by one
    """
    return {
        "compressor_ps": machine.ps(machine.compression.latency),
        "compressor_cost": machine.ps(machine.compression.initiation_interval) * COST_PER_PS,
        "fetch_whole_raw_entry": machine.compression.fetch_whole_raw_entry,
        "eight_byte_class": eight_byte_class,
        "single_raw_sectors": single_raw_sectors,
    }
