"""Which columns of a table of results tell them apart, and what kind of quantity a column has."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.machine import Machine
from buddysim.machine.training import TrainingMachine
from buddysim.machine.units import Bandwidth, Frequency, Time
from buddysim.sweep.engines import NAMES, find

_ALWAYS = ("key", "trace", "network", "machine", "scheme")
_TIMES = ("time_ps", "slowdown_vs_ideal", "time_ms", "performance_vs_oracle")
#: Columns that say nothing on a screen.
_NEVER = (
    "settings_hash",
    "baseline",
    "machine_checksum",
    "content",
    "sources",
    "file_bytes",
    "file_changed_ns",
    "seconds",
    "peak_rss_bytes",
    "model_version",
    "engine",
)


def distinguishing_columns(found: Any, counters: Collection[str]) -> list[str]:
    """Who a row is, the settings that vary, and its times; figures of machines count where one machine's differ.

    Parameters
    ----------
    found : Arrow table of results of one engine
    counters : names of columns that are no settings
    """
    settings = {name for engine in map(find, NAMES) for name in engine.axes()}
    machines = found.column("machine").to_pylist() if "machine" in found.column_names else None
    kept = []
    for name in found.column_names:
        values = found.column(name).to_pylist()
        if name in _NEVER or all(value is None for value in values):
            continue
        told = (name in settings or name not in counters) and _varies(values, machines if "." in name else None)
        if name in _ALWAYS or name in _TIMES or told:
            kept.append(name)
    first = [name for name in _ALWAYS if name in kept]
    last = [name for name in _TIMES if name in kept]
    return [*first, *(name for name in kept if name not in (*first, *last)), *last]


def _varies(values: list[Any], groups: list[Any] | None) -> bool:
    """Whether there are different values, in any group if there are groups."""
    there = {(None if groups is None else groups[n], repr(v)) for n, v in enumerate(values) if v is not None}
    return len(there) > len({group for group, _ in there})


@cache
def quantity(name: str) -> str | None:
    """Of a machine's figure, in base units in a table: ``bytes``, ``time``, ``bandwidth``, ``frequency``, ``flops``.

    None for anything else.
    """
    if "." not in name:
        return None
    for machine in (Machine.load("p100-nvlink2"), TrainingMachine.load("titan-x")):
        for key in (name, f"training.links.pcie3.{name.removeprefix('link.')}"):
            try:
                value, text = machine.value(key), machine.text(key)
            except BuddysimError:
                continue
            kinds = {Time: "time", Bandwidth: "bandwidth", Frequency: "frequency"}
            of_a_count = "flops" if text.endswith("FLOPS") else "bytes" if text.endswith("B") else None
            return kinds.get(type(value), of_a_count)
    return None
