"""The link in the engine's units: whole picoseconds, bytes and counts."""

from __future__ import annotations

from fractions import Fraction

from buddysim.machine import Machine
from buddysim.replay.port_costs import COST_PER_PS


def link_numbers(m: Machine) -> dict[str, object]:
    """The link's numbers by the engine's names."""
    byte_cost = Fraction(10**12 * COST_PER_PS, m.bytes_per_s(m.link.bandwidth))
    write_bytes_per_s = m.bytes_per_s(m.link.write_bandwidth if m.link.write_bandwidth.amount else m.link.bandwidth)
    write_cost = Fraction(10**12 * COST_PER_PS, write_bytes_per_s)
    return {
        "link_byte_cost": (byte_cost.numerator, byte_cost.denominator),
        "link_bytes_per_s": m.bytes_per_s(m.link.bandwidth),
        "link_write_byte_cost": (write_cost.numerator, write_cost.denominator),
        "link_write_bytes_per_s": write_bytes_per_s,
        "link_load_ps": m.ps(m.link.load_to_use) - m.ps(m.l2.load_to_use),
        "link_header_bytes": m.link.header_size,
        "link_max_payload_bytes": m.link.max_payload,
    }
