"""What the time of a replay is bound by: the resource nearest to its limit, and the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.report.quantities import format_percent

#: A resource that reaches less of its limit doesn't bind (assumed): what the warps wait for is latency.
BOTTLENECK_FROM = 0.6

RESOURCES = {
    "dram_channels": "device memory",
    "dram_busiest_channel": "busiest channel",
    "link_read": "link, read",
    "link_write": "link, write",
    "l2_slices": "L2 slices",
    "crossbar_reply": "crossbar, replies",
    "crossbar_request": "crossbar, requests",
    "l1": "L1",
    "issue_slots": "issue slots",
    "um_fault_handling": "fault handling",
}
#: Channels are shown as one resource, but where one of them alone is the limit.
_UNEVEN = 1.1

Flat = Mapping[str, Any]


def utilizations(result: Flat) -> list[tuple[str, float]]:
    """The resources and the share of its limit that each reached, the nearest first."""
    prefix = "utilization."
    shares = {key.removeprefix(prefix): float(share) for key, share in result.items() if key.startswith(prefix)}
    if shares.get("dram_busiest_channel", 0) < _UNEVEN * shares.get("dram_channels", 0):
        shares.pop("dram_busiest_channel", None)
    return sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))


def format_bottleneck(result: Flat) -> tuple[str, str]:
    """What the time is bound by, and the share of that limit that was reached."""
    name, share = utilizations(result)[0]
    return (_name(name), format_percent(share)) if share >= BOTTLENECK_FROM else ("latency", "-")


def next_limit(result: Flat) -> tuple[str, str]:
    """What comes nearest after that."""
    nearest, second = utilizations(result)[:2]
    name, share = second if nearest[1] >= BOTTLENECK_FROM else nearest
    return _name(name), format_percent(share)


def _name(name: str) -> str:
    return RESOURCES.get(name, name.replace("_", " "))
