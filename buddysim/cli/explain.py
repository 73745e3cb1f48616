"""``python -m buddysim explain NAME``: definitions of counters, machine keys, axes of sweeps and labels of screens."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from buddysim.report.screen import Part

NAME = "explain"
TASK = "look"
ORDER = 320
HELP = """define a counter, machine key, axis or label and print its source

A counter has its unit, its source, and the equations that tie it to other counters."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", nargs="+", help="name, for example buddy.access_fraction, link.bandwidth or 'fills'"
    )


def run(args: argparse.Namespace) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.base.hints import hint, shortened
    from buddysim.report.screen import print_screen

    name = " ".join(args.name)
    definitions = list(_definitions(name))
    if not definitions:
        nearest = hint(name, list(_known()))
        raise BuddysimError(f"explain: {shortened(name)}: no such counter, key, axis or label{nearest}")
    print_screen(part for number, parts in enumerate(definitions) for part in ([""] if number else []) + parts)
    return 0


def _definitions(name: str) -> Iterator[list[Part]]:
    from buddysim.report.counter_texts import counter_texts
    from buddysim.report.labels import find_labels

    for counter in counter_texts():
        if counter.name == name:
            unit = f" ({counter.unit})" if counter.unit else ""
            parts: list[Part] = [f"{name}{unit}, {counter.engine}: {counter.text}"]
            parts += [f"law: {law}" for law in counter.laws]
            yield [*parts, f"source: {counter.source}"]
    yield from _keys(name)
    yield from _axes(name)
    for label in find_labels(name):
        counters = [f"counters: {', '.join(label.counters)}"] if label.counters else []
        yield [f"{label.name}, on the screen of {label.screen}: {label.text}", *counters]


def _axes(name: str) -> Iterator[list[Part]]:
    """An axis of sweeps, of each engine that has it."""
    from buddysim.sweep import engines

    for engine_name in engines.NAMES:
        axis = engines.find(engine_name).axes().get(name.removeprefix("--").replace("-", "_"))
        if axis is not None:
            yield [f"{name}, axis of sweeps of the engine {engine_name}: {axis.help}"]


def _keys(name: str) -> Iterator[list[Part]]:
    """A key of machines, with its default and each preset's value."""
    from buddysim.machine import Machine
    from buddysim.machine.fields import default_source
    from buddysim.machine.section import default_text

    for key, field in _machine_keys():
        if key == name:
            parts: list[Part] = [f"{name}, key of machine files: {field.description}"]
            if source := default_source(field):
                parts.append(f"default: {default_text(field)}; {source}")
            for preset in Machine.presets():
                machine = Machine.load(preset)
                if name in machine.dotted_keys():
                    source = "the default" if machine.is_default(name) else machine.source(name)
                    parts.append(f"{preset}: {machine.text(name)}; {source}")
            yield [*parts, "source: docs/reference/machine-keys.md (python -m tools.write_reference writes it)"]


def _machine_keys() -> Iterator[tuple[str, FieldInfo]]:
    from buddysim.machine.model import keys
    from buddysim.machine.section import field_keys
    from buddysim.machine.training_table import TrainingConfig

    yield from keys()
    yield from field_keys(TrainingConfig, "training.")


def _known() -> Iterator[str]:
    from buddysim.report.counter_texts import counter_texts
    from buddysim.report.labels import labels

    yield from (counter.name for counter in counter_texts())
    yield from (key for key, _ in _machine_keys())
    yield from (label.name for label in labels())
