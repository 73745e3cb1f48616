"""A machine in the engine's units: whole picoseconds, bytes and counts."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from buddysim.replay.crossbar.numbers import crossbar_numbers
from buddysim.replay.dram.numbers import dram_numbers
from buddysim.replay.l1.numbers import l1_numbers
from buddysim.replay.l2.numbers import l2_numbers
from buddysim.replay.link.numbers import link_numbers
from buddysim.replay.sm.numbers import sm_numbers

if TYPE_CHECKING:
    from buddysim.machine import Machine

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
    numbers |= dram_numbers(machine) | link_numbers(machine)
    return numbers | {
        "scale_num": compute_gap_scale.numerator,
        "scale_den": compute_gap_scale.denominator,
        "horizon_pages": HORIZON_PAGES,
    }
