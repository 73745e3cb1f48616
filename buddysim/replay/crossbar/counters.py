"""Counters of the crossbar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.replay.component.counted import PartCounters, busy_fraction, utilization, waits
from buddysim.replay.port_costs import COST_PER_PS
from buddysim.replay.primitives.kinds import Queue


def _reply_ports_busy(c: Mapping[str, Any]) -> float:
    return busy_fraction(c, c["l2_reads"] * c["numbers"]["reply_cost"] / COST_PER_PS, c["numbers"]["sms"])


COUNTERS: PartCounters = {
    "Queueing": {
        "queueing.request_port_histogram": waits(
            Queue.REQUEST_PORT, "requests", "requests and store data for their SM's crossbar port"
        ),
        "queueing.reply_port_histogram": waits(
            Queue.REPLY_PORT, "replies", "replies to loads for their SM's crossbar port"
        ),
    },
    "Utilization": {
        "utilization.crossbar_reply": utilization("the SMs' reply ports at the crossbar", _reply_ports_busy),
    },
}
