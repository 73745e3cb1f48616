"""The crossbar in the engine's units: whole picoseconds and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.compress import SECTOR_BYTES
from buddysim.replay.port_costs import port_cost, sector_ps

if TYPE_CHECKING:
    from buddysim.machine import Machine


def crossbar_numbers(m: Machine) -> dict[str, object]:
    """The crossbar's numbers by the engine's names."""
    l2 = m.ps(m.l2.load_to_use)
    request = sector_ps(m, m.crossbar.request_bandwidth)
    slice_port = sector_ps(m, m.l2.bandwidth)
    reply = sector_ps(m, m.crossbar.reply_bandwidth)
    reply_sector = max(reply, slice_port)
    behind_replies = max(0, request - reply_sector)
    return {
        "request_ps": max(l2 // 2, request),
        "reply_ps": max(l2 - l2 // 2, reply_sector),
        "acknowledgement_ps": max(l2 - l2 // 2, slice_port),
        "sector_ps": reply_sector,
        "request_lag_ps": behind_replies,
        "store_sector_ps": behind_replies if m.crossbar.input_queued else max(request, slice_port),
        "reply_cost": port_cost(SECTOR_BYTES, m.bytes_per_s(m.crossbar.reply_bandwidth)),
        "request_cost": port_cost(SECTOR_BYTES, m.bytes_per_s(m.crossbar.request_bandwidth)),
        "crossbar_input_queued": m.crossbar.input_queued,
        "interleave_requesters": m.crossbar.interleave_requesters,
        "queue_sector_ps": request,
        "reply_sector_ps": reply,
        "slice_sector_ps": slice_port,
    }
