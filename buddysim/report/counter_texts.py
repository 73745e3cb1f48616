"""Definitions of all counters of both engines, as `explain`, `results` and the generated page show them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from buddysim.base.counter import Counter
from buddysim.base.markdown import wrap_markdown
from buddysim.replay.counter_definitions import COUNTERS as REPLAY_COUNTERS
from buddysim.replay.schemes import REGISTRY
from buddysim.training.counter_definitions import COUNTERS as TRAINING_COUNTERS


@dataclass(frozen=True)
class CounterText:
    """One counter.

    Attributes
    ----------
    name : its key in results
    engine : ``replay`` or ``training``
    unit : empty if it has none
    text : its definition
    source : module that defines it
    laws : equations that it is part of
    """

    name: str
    engine: str
    unit: str
    text: str
    source: str
    laws: tuple[str, ...] = ()


def counter_texts() -> list[CounterText]:
    """Return every counter: those of replays, of training iterations, then those of single schemes."""
    return [
        *_of_engine(REPLAY_COUNTERS, "replay"),
        *_of_engine(TRAINING_COUNTERS, "training"),
        *_of_schemes(),
    ]


def counters_page() -> str:
    """Return docs/reference/replay-counters.md: a table for each section of each engine."""
    parts = [_HEAD]
    for engine, counters in (("Replays", REPLAY_COUNTERS), ("Training iterations", TRAINING_COUNTERS)):
        parts.append(f"\n# {engine}\n")
        for section in dict.fromkeys(counter.section for counter in counters.values()):
            rows = [counter for counter in counters.values() if counter.section == section]
            parts.append(f"\n## {section}\n\n| key | unit | definition |\n|---|---|---|\n")
            parts += [f"| `{row.name}` | {row.unit or '-'} | {row.text} |\n" for row in rows]
            laws = dict.fromkeys(law for row in rows for law in row.laws if law.startswith(f"`{row.name}`"))
            if laws:
                parts.append("\n" + "".join(f"{wrap_markdown('- ' + law)}\n" for law in laws))
    parts.append("\n# Single replay schemes\n\n| key | scheme | unit | definition |\n|---|---|---|---|\n")
    for scheme_name, scheme in REGISTRY.items():
        for name, definition in scheme.COUNTERS.items():
            unit, _, text = definition.partition(": ")
            parts.append(f"| `{name}` | {scheme_name} | {unit} | {text} |\n")
    return "".join(parts)


_HEAD = """\
<!-- Generated from code by `python -m tools.write_counters`; a test compares. -->

# Counters

`run --json` and `train --json` write one flat key per counter, always all of them, by scheme. A counter that a scheme
does not use is 0. All but `speed.*` and `provenance` are the same, bit for bit, for the same input and options on every
machine.

An *entry* or line is 128 B of four *sectors*. A *fill* brings missing sectors of one entry into the L2. A *write-back*
writes the dirty sectors of one evicted entry. Counts are of the kernels that ran, from cold caches; nothing is flushed
at the end.
"""


def _of_engine(counters: dict[str, Counter], engine: str) -> Iterator[CounterText]:
    source = f"buddysim/{engine}/counter_definitions.py"
    for counter in counters.values():
        yield CounterText(counter.name, engine, counter.unit, counter.text, source, counter.laws)


def _of_schemes() -> Iterator[CounterText]:
    for scheme_name, scheme in REGISTRY.items():
        for name, definition in scheme.COUNTERS.items():
            unit, _, text = definition.partition(": ")
            yield CounterText(name, "replay", unit, text, f"the replay scheme {scheme_name}, {scheme.__module__}")
