"""The screen of ``machines``: the presets, or one machine with its sources."""

from __future__ import annotations

from typing import Any

from buddysim.machine import Bandwidth, Machine, Time
from buddysim.machine.training import TrainingMachine
from buddysim.machine.units import format_flops, format_size
from buddysim.report.screen import Column, Part, ScreenTable, description_table

_DESCRIPTION = Column("description", left=True, text=True)


def replay_machines(machines: list[Machine]) -> ScreenTable:
    """Return the table of the machines for `run`."""
    headings = (
        "SMs", "core\nclock", "L1 per\nSM", "L2", "device\nmemory", "device\nmemory, GB/s", "link,\neach way",
    )  # fmt: skip
    rows = [
        (
            machine.name,
            str(machine.sm.count),
            str(machine.clock.core),
            format_size(machine.l1.size),
            format_size(machine.l2.size),
            format_size(machine.dram.capacity),
            f"{machine.dram_bytes_per_s / 1e9:.0f}",
            str(machine.link.bandwidth),
            machine.description,
        )
        for machine in machines
    ]
    return ScreenTable([Column("machine", left=True), *map(Column, headings), _DESCRIPTION], rows)


def training_machines(machines: list[TrainingMachine]) -> ScreenTable:
    """Return the table of the machines for `train`."""
    headings = ("SMs", "single\nprecision", "device\nmemory", "device\nmemory, GB/s")
    rows = [
        (
            machine.name,
            str(machine.training.sms),
            format_flops(machine.training.fp32),
            format_size(machine.training.device_memory),
            f"{machine.dram_bytes_per_s / 1e9:.0f}",
            machine.link,
            _times_from(machine),
            machine.description,
        )
        for machine in machines
    ]
    named = (Column("link", left=True), Column("times from", left=True), _DESCRIPTION)
    return ScreenTable([Column("machine", left=True), *map(Column, headings), *named], rows)


def _times_from(machine: TrainingMachine) -> str:
    """Where a machine's times come from: layers timed with a library, its operators' timings, or another GPU's."""
    from buddysim.training.cost.operators.model import OPERATORS, PREDICTED, OperatorModel

    if machine.library != "generic":
        return machine.library
    source = OperatorModel(machine).source("bf16")
    return "operators" if source.startswith(OPERATORS) else source.removeprefix(f"{PREDICTED} ")


def machine_parts(machine: Machine | TrainingMachine) -> list[Part]:
    """Return the screen of one machine: each key with its value and source."""
    title = f"{machine.name}: {machine.description}"
    checksum = f"checksum {machine.checksum[:16]}"
    texts = machine.texts()
    if isinstance(machine, TrainingMachine):
        rows = [(key, texts[key], machine.source(key)) for key in machine.dotted_keys()]
        return [title, checksum, "", description_table(("key", "value", "source"), rows)]
    peak = f"peak device memory {machine.dram_bytes_per_s / 1e9:.1f} GB/s, {checksum}"
    converted = [
        (key, texts[key], _resolved(machine, machine.value(key)), machine.source(key))
        for key in machine.dotted_keys()
        if key not in ("name", "description")
    ]
    return [title, peak, "", description_table(("key", "value", "converted", "source"), converted)]


def _resolved(machine: Machine, value: Any) -> str:
    """A time in cycles in nanoseconds, a rate per cycle in GB/s; empty for other values."""
    if isinstance(value, Time) and value.clock is not None and value.amount:
        return f"{machine.ps(value) / 1000:.2f} ns"
    if isinstance(value, Bandwidth) and value.clock is not None:
        return f"{machine.bytes_per_s(value) / 1e9:.1f} GB/s"
    return ""
