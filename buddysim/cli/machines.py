"""``python -m buddysim machines``: lists the presets, shows a machine with the source of every figure."""

from __future__ import annotations

import argparse
import json
from typing import Any

from rich.console import Console
from rich.table import Table

from buddysim.base.errors import BuddysimError
from buddysim.base.settings import parse_settings
from buddysim.machine import Bandwidth, Machine, Time
from buddysim.machine.presets import file_content, is_path, training_presets
from buddysim.machine.training import TrainingMachine
from buddysim.machine.units import format_flops, format_size

NAME = "machines"
HELP = "list the machines, or show one with the source of every figure"

_WIDTH_WHEN_PIPED = 160


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("machine", nargs="?", metavar="NAME|FILE.toml", help="the machine to show; none: list all")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--toml", action="store_true", help="print the machine file, to start your own from")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a figure, for example l2.size=6MiB"
    )


def run(args: argparse.Namespace) -> int:
    if args.machine is None and (args.set or args.toml):
        raise BuddysimError("machines: --set and --toml need the name of a machine")
    if args.machine is None:
        machines = [Machine.load(name) for name in Machine.presets()]
        trained = [TrainingMachine.load(name) for name in TrainingMachine.names()]
        if args.json:
            everything = {machine.name: machine.to_dict() for machine in machines}
            for other in trained:
                everything.setdefault(other.name, other.to_dict())
            print(json.dumps(everything, indent=2))
        else:
            _print("for run:", _overview(machines), "", "for training:", _training_overview(trained))
        return 0
    machine = _load(args.machine)
    if args.set:
        machine = machine.with_overrides(parse_settings(args.set), where="--set")
    if args.json:
        print(json.dumps({**machine.to_dict(), "checksum": machine.checksum}, indent=2))
    elif args.toml:
        print(machine.to_toml(), end="")
    elif isinstance(machine, Machine):
        _show(machine)
    else:
        _show_training(machine)
    return 0


def _load(name: str) -> Machine | TrainingMachine:
    """A machine for replays; one for training where the preset or file describes nothing else."""
    if name in training_presets():
        return TrainingMachine.load(name)
    if is_path(name):
        content = file_content(name)
        if "training" in content and "sm" not in content:
            return TrainingMachine.load(name)
    return Machine.load(name)


def _print(*parts: str | Table) -> None:
    """Prints at the terminal's width, or at a fixed one into a file or pipe; without trailing blanks."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _WIDTH_WHEN_PIPED
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _overview(machines: list[Machine]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("machine", "SMs", "core", "L1 per SM", "L2", "device memory", "GB/s", "link, each way"):
        table.add_column(heading, no_wrap=True, justify="left" if heading == "machine" else "right")
    table.add_column("what it is", overflow="fold")
    for machine in machines:
        table.add_row(
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
    return table


def _training_overview(machines: list[TrainingMachine]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("machine", "SMs", "single precision", "device memory", "GB/s", "link", "calibration"):
        left = heading in ("machine", "link", "calibration")
        table.add_column(heading, no_wrap=True, justify="left" if left else "right")
    table.add_column("what it is", overflow="fold")
    for machine in machines:
        table.add_row(
            machine.name,
            str(machine.sms),
            format_flops(machine.fp32_flops),
            format_size(machine.memory_bytes),
            f"{machine.dram_bytes_per_s / 1e9:.0f}",
            machine.link,
            "uncalibrated" if machine.library == "generic" else machine.library,
            machine.description,
        )
    return table


def _show_training(machine: TrainingMachine) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("key", no_wrap=True)
    table.add_column("value", no_wrap=True)
    table.add_column("source", overflow="fold")
    for key in machine.dotted_keys():
        table.add_row(key, machine.text(key), machine.source(key))
    _print(f"{machine.name}: {machine.description}", f"checksum {machine.checksum[:16]}", "", table)


def _show(machine: Machine) -> None:
    peak = f"peak device memory {machine.dram_bytes_per_s / 1e9:.1f} GB/s, checksum {machine.checksum[:16]}"
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("key", no_wrap=True)
    table.add_column("value", no_wrap=True)
    table.add_column("is", no_wrap=True, justify="right")
    table.add_column("source", overflow="fold")
    for key in machine.dotted_keys():
        if key not in ("name", "description"):
            table.add_row(key, machine.text(key), _resolved(machine, machine.value(key)), machine.source(key))
    _print(f"{machine.name}: {machine.description}", peak, "", table)


def _resolved(machine: Machine, value: Any) -> str:
    """A time in cycles in nanoseconds, a rate per cycle in GB/s; empty for other values."""
    if isinstance(value, Time) and value.clock is not None and value.amount:
        return f"{machine.ps(value) / 1000:.2f} ns"
    if isinstance(value, Bandwidth) and value.clock is not None:
        return f"{machine.bytes_per_s(value) / 1e9:.1f} GB/s"
    return ""
