"""Writes docs/reference/replay-counters.md and training-counters.md from the definitions of the counters."""

from __future__ import annotations

from collections.abc import Mapping

from buddysim.base.counter import Counter, unit_and_text
from buddysim.base.markdown import wrap_markdown
from buddysim.replay.counter_definitions import COUNTERS as REPLAY_COUNTERS
from buddysim.replay.schemes import REGISTRY
from buddysim.training.counter_definitions import COUNTERS as TRAINING_COUNTERS
from tools.reference import cell, head, table

_REPLAY = """
Counters of a replay, by scheme: `run --json` writes one flat key per counter, always all of them. A counter that a
scheme does not use is 0. All but `provenance` are bit-identical on every machine for the same input and options; one
installation writes the same bytes.

An *entry* or line is 128 B of four *sectors*. A *fill* brings missing sectors of one entry into the L2. A *write-back*
writes the dirty sectors of one evicted entry. Counters cover the kernels that ran, from cold caches. Nothing is flushed
at the end. Equations below a table hold in every result.
"""
_TRAINING = """
Counters of a training iteration, by scheme: `train --json` writes one flat key per counter, always all of them. A
counter that a scheme does not use is 0. Equations below a table hold in every result.
[Training model](../explanation/training-model.md) explains the simulation.
"""


def replay_page() -> str:
    """Return docs/reference/replay-counters.md."""
    schemes = dict[str, list[str]]()
    definitions, laws = dict[str, str](), dict[str, None]()
    for scheme_name, scheme in REGISTRY.items():
        definitions |= scheme.COUNTERS | scheme.ENGINE_COUNTERS
        laws |= dict.fromkeys(scheme.LAWS)
        for name in scheme.COUNTERS | scheme.ENGINE_COUNTERS:
            schemes.setdefault(name, []).append(scheme_name)
    rows = [
        (f"`{name}`", ", ".join(schemes[name]), *map(cell, unit_and_text(definition)))
        for name, definition in definitions.items()
    ]
    return (
        head("Replay counters")
        + _REPLAY
        + _sections(REPLAY_COUNTERS)
        + "\n## Single schemes\n"
        + table(("key", "scheme", "unit", "definition"), rows)
        + "\n"
        + "".join(f"{wrap_markdown('- ' + law)}\n" for law in laws)
    )


def training_page() -> str:
    """Return docs/reference/training-counters.md."""
    return head("Training counters") + _TRAINING + _sections(TRAINING_COUNTERS)


def _sections(counters: Mapping[str, Counter]) -> str:
    parts = []
    for section in dict.fromkeys(counter.section for counter in counters.values()):
        rows = [counter for counter in counters.values() if counter.section == section]
        cells = [(f"`{row.name}`", row.unit or "-", cell(row.text)) for row in rows]
        parts.append(f"\n## {section}\n{table(('key', 'unit', 'definition'), cells)}")
        laws = dict.fromkeys(law for row in rows for law in row.laws if law.startswith(f"`{row.name}`"))
        if laws:
            parts.append("\n" + "".join(f"{wrap_markdown('- ' + law)}\n" for law in laws))
    return "".join(parts)
