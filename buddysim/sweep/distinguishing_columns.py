"""Selects the columns to show for a table of results, and the unit of each column."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.machine import Machine
from buddysim.machine.training import TrainingMachine
from buddysim.machine.units import Bandwidth, Frequency, Time
from buddysim.sweep.engines import NAMES, find

KEY, SIZES = "key", "sizes"
TIMES = ("time_ps", "slowdown_vs_ideal", "time_ms", "performance_vs_oracle")
_IDENTITY = (KEY, "trace", "network", "machine", "scheme")
#: Columns about files and processes, which no screen shows unasked.
_HIDDEN = (
    "settings_hash",
    "baseline",
    "machine_checksum",
    "content",
    "sources",
    "seconds",
    "peak_rss_bytes",
    "model_version",
    "engine",
)

#: Settings whose default is that of the machine.
_SET_BY_MACHINE = ("link", "conv_library")

Row = Mapping[str, Any]


def distinguishing_columns(rows: Sequence[Row], counters: Collection[str]) -> list[str]:
    """Return the columns to show: those that identify a row, the settings that vary between rows, and the times.

    A setting that another one determines does not vary: a machine key or the machine's default link counts only among
    the rows of one machine, and a key of the link to the host only among the rows of one link. The column ``sizes`` is
    included if any sizes are synthetic.

    Parameters
    ----------
    rows : rows of results of one engine
    counters : names of columns that are no settings
    """
    settings = {name for engine in map(find, NAMES) for name in engine.axes()}
    columns = list(dict.fromkeys(name for row in rows for name in row))
    selected = [
        name
        for name in columns
        if name not in (*_IDENTITY, *TIMES, SIZES, *_HIDDEN)
        and (name in settings or name not in counters)
        and _varies(rows, name)
    ]
    first = [name for name in _IDENTITY if any(row.get(name) is not None for row in rows)]
    sizes = [SIZES] * any(row.get(SIZES) == "synthetic" for row in rows)
    times = [name for name in TIMES if any(row.get(name) is not None for row in rows)]
    return [*first, *sizes, *selected, *times]


def varying_columns(rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
    """Return the columns that identify rows or are settings, and have more than one value."""
    return [name for name in columns if name not in (KEY, *TIMES) and len({repr(row.get(name)) for row in rows}) > 1]


def sort_rows(rows: Sequence[Row], columns: Sequence[str]) -> list[Row]:
    """Return the rows in the order of the values of some columns: numbers by value, before texts."""

    def position(value: Any) -> tuple[int, float, str]:
        if isinstance(value, int | float):
            return 0, float(value), ""
        return (2, 0.0, "") if value is None else (1, 0.0, str(value))

    return sorted(rows, key=lambda row: tuple(position(row.get(name)) for name in columns))


def _varies(rows: Sequence[Row], name: str) -> bool:
    """Whether a column has different values among the rows that agree in the settings that it may be derived from."""
    groups = ("machine", "link") if "." in name else ("machine",) if name in _SET_BY_MACHINE else ()
    values = {(tuple(row.get(group) for group in groups), repr(row[name])) for row in rows if row.get(name) is not None}
    return len(values) > len({group for group, _ in values})


@cache
def quantity(name: str) -> str | None:
    """Return the quantity of a column: ``bytes``, ``time_ps``, ``time_ms``, ``bandwidth``, ``frequency``, ``flops``.

    Columns of machine keys are in base units. The quantity of a counter is the suffix of its name. None for a plain
    number or a text.
    """
    for suffix, of_counter in (
        ("_ps", "time_ps"),
        ("_ms", "time_ms"),
        ("_bytes", "bytes"),
        ("bytes_per_s", "bandwidth"),
    ):
        if name.endswith(suffix):
            return of_counter
    if "." not in name:
        return None
    for machine in (Machine.load("p100-nvlink2"), TrainingMachine.load("titan-x")):
        for key in (name, f"training.links.pcie3.{name.removeprefix('link.')}"):
            try:
                value, text = machine.value(key), machine.text(key)
            except BuddysimError:
                continue
            quantities = {Time: "time_ps", Bandwidth: "bandwidth", Frequency: "frequency"}
            of_integer = "flops" if text.endswith("FLOPS") else "bytes" if text.endswith("B") else None
            return quantities.get(type(value), of_integer)
    return None
