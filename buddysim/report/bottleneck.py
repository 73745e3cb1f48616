"""The resource nearest to its peak in a replay, and the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.base.plugins import cached_by_plugins
from buddysim.replay.schemes import shown_rows
from buddysim.report.quantities import format_whole_percent

#: A resource below this utilization is not called a bottleneck (assumed).
BOTTLENECK_FROM = 0.6

_OF_PARTS = {
    "dram_channels": "DRAM",
    "dram_busiest_channel": "channel",
    "link_read": "link read",
    "link_write": "link write",
    "l2_slices": "L2",
    "crossbar_reply": "replies",
    "crossbar_request": "requests",
    "l1": "L1",
    "issue_slots": "issue",
}
#: Channels are shown as one resource, unless one of them alone is this much busier than the mean.
_UNEVEN = 1.1
_PREFIX = "utilization."

Flat = Mapping[str, Any]


@cached_by_plugins
def resources() -> dict[str, str]:
    """Return the name of each resource, short enough for a cell."""
    of_schemes = {row.counters[0].removeprefix(_PREFIX): row.label for row in shown_rows() if row.kind == "resource"}
    return {**_OF_PARTS, **of_schemes}


def utilizations(result: Flat) -> list[tuple[str, float]]:
    """Return the resources and their utilization, the highest first."""
    fractions = {key.removeprefix(_PREFIX): float(value) for key, value in result.items() if key.startswith(_PREFIX)}
    if fractions.get("dram_busiest_channel", 0) < _UNEVEN * fractions.get("dram_channels", 0):
        fractions.pop("dram_busiest_channel", None)
    return sorted(fractions.items(), key=lambda pair: (-pair[1], pair[0]))


def format_bottleneck(result: Flat) -> str:
    """Return the bottleneck with its utilization, for example ``DRAM 86 %``; ``none > 60 %`` if there is none."""
    nearest = utilizations(result)[0]
    return _format(nearest) if nearest[1] >= BOTTLENECK_FROM else f"none > {format_whole_percent(BOTTLENECK_FROM)}"


def format_next_resource(result: Flat) -> str:
    """Return the resource nearest to its peak that `format_bottleneck` does not name, with its utilization."""
    nearest, second = utilizations(result)[:2]
    return _format(second if nearest[1] >= BOTTLENECK_FROM else nearest)


def _format(resource: tuple[str, float]) -> str:
    name, fraction = resource
    return f"{resources().get(name, name.replace('_', ' '))} {format_whole_percent(fraction)}"
