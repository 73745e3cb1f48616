"""``python -m buddysim explain COUNTER``: what a number of a result, or a key of a machine, means."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buddysim.report.screen import Part

NAME = "explain"
HELP = """say what a counter means: definition, unit, source, and the laws that tie it to others

Keys of machines and columns of results' tables too."""

#: Columns of tables that are neither counters nor settings nor keys of machines.
COLUMNS = {
    "slowdown_vs_ideal": ("ratio", "`time_ps` over that of the same point under `ideal`; below 1 is faster"),
    "key": ("text", "key of the result in a store: a hash of everything that determines it"),
    "engine": ("text", "`replay` or `training`"),
    "model_version": ("number", "version of the engine's model"),
    "machine_checksum": ("text", "SHA-256 over every figure of the machine that a simulation depends on"),
    "content": ("text", "SHA-256 of the trace file, or of the network's layers and their names"),
    "seconds": ("s", "wall-clock time of the simulation"),
    "peak_rss_bytes": ("B", "peak resident memory of the process during the simulation"),
    "sources": ("text", "checksum of the engine's sources that made the result"),
    "settings_hash": ("text", "hash of the settings as they were given, files by their paths"),
    "baseline": ("text", "key of the result that `slowdown_vs_ideal` is against"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("counter", metavar="COUNTER", help="for example buddy.access_fraction or link.bandwidth")


def run(args: argparse.Namespace) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.base.hints import hint, shortened
    from buddysim.report.screen import print_screen

    found = list(_explained(args.counter))
    if not found:
        known = list(_known())
        raise BuddysimError(f"explain: {shortened(args.counter)}: no such counter or key{hint(args.counter, known)}")
    print_screen(part for number, parts in enumerate(found) for part in ([""] if number else []) + parts)
    return 0


def _explained(name: str) -> Iterator[list[Part]]:
    from buddysim.report.counter_texts import counter_texts

    for counter in counter_texts():
        if counter.name == name:
            unit = f" ({counter.unit})" if counter.unit else ""
            parts: list[Part] = [f"{name}{unit}, {counter.engine}: {counter.text}"]
            parts += [f"law: {law}" for law in counter.laws]
            yield [*parts, f"source: {counter.source}"]
    yield from _keys(name)
    if name in COLUMNS:
        unit, text = COLUMNS[name]
        yield [f"{name} ({unit}), of tables of results: {text}"]


def _keys(name: str) -> Iterator[list[Part]]:
    """A key of machines, with each preset's value."""
    from buddysim.machine import Machine

    for key, description in _machine_keys():
        if key == name:
            parts: list[Part] = [f"{name}, of machine files: {description}"]
            for preset in Machine.presets():
                machine = Machine.load(preset)
                if name in machine.dotted_keys():
                    parts.append(f"{preset}: {machine.text(name)}; {machine.source(name)}")
            yield [*parts, "source: docs/machine-files.md"]


def _machine_keys() -> Iterator[tuple[str, str]]:
    from buddysim.machine.model import keys
    from buddysim.machine.section import field_keys
    from buddysim.machine.training_table import TrainingConfig

    for key, field in (*keys(), *field_keys(TrainingConfig, "training.")):
        yield key, field.description or ""


def _known() -> Iterator[str]:
    from buddysim.report.counter_texts import counter_texts

    yield from (counter.name for counter in counter_texts())
    yield from (key for key, _ in _machine_keys())
    yield from COLUMNS
