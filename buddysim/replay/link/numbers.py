"""The link in the engine's units: whole picoseconds, bytes and counts."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from buddysim.replay.port_costs import COST_PER_PS

if TYPE_CHECKING:
    from buddysim.machine import Machine


def link_numbers(m: Machine) -> dict[str, object]:
    """The link's numbers by the engine's names; costs of a byte as numerator and denominator."""
    to_gpu, from_gpu = m.bytes_per_s(m.link.bandwidth), m.bytes_per_s(m.link.from_gpu)
    return {
        "link_byte_cost": Fraction(10**12 * COST_PER_PS, to_gpu).as_integer_ratio(),
        "link_bytes_per_s": to_gpu,
        "link_write_byte_cost": Fraction(10**12 * COST_PER_PS, from_gpu).as_integer_ratio(),
        "link_write_bytes_per_s": from_gpu,
        "link_load_ps": m.ps(m.link.load_to_use) - m.ps(m.l2.load_to_use),
        "link_header_bytes": m.link.header_size,
        "link_max_payload_bytes": m.link.max_payload,
    }
