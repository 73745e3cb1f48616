"""The screen of a recorded network: parameters, what autograd saves and in which modules, operations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from buddysim.report.quantities import format_significant
from buddysim.report.screen import NOT_APPLICABLE, Column, Part, ScreenTable
from buddysim.training.networks.graph import Network
from buddysim.training.networks.recorded_facts import recorded_facts

_MIB, _GIB = 2**20, 2**30
_NUMBER = re.compile(r"(?<=\.)\d+(?=[. ]|$)| \(\d+\)$")
_MAX_KINDS = 8


def recorded_parts(network: Network, batch: int) -> list[Part]:
    """Return the screen of ``networks show``: what holds memory, and a row for each module of all blocks together."""
    shown = recorded_facts(network, batch)
    memory = shown["memory"]
    return [
        f"{shown['name']}: {shown['description']}, batch {batch}, {format_options(shown['options'])}",
        f"{shown['parameters']:,} parameters; {_flops(shown['forward_flops'])} forward, "
        f"{_flops(shown['backward_flops'])} backward",
        "",
        f"saved for backward  {_gib(memory['saved_bytes'])}",
        f"peak without optimizer  {_gib(memory['peak_bytes'])}, of which weights {_gib(memory['weights_bytes'])}",
        "",
        _kinds(shown),
        "",
        _modules(shown),
        "",
        *(f"{title}: {rule}." for title, rule in shown["assumptions"].items()),
    ]


def format_options(options: Mapping[str, Any]) -> str:
    """Return what a model's configuration leaves open as text; what has no effect is left out."""
    named = [f"{name} {options[name]}" for name in ("sequence", "recipe", "attention", "loss") if name in options]
    recorded = [f"recorded from {options['recorded']}"] if "recorded" in options else []
    return ", ".join([*named, *(["compiled"] if options.get("compile") else []), *recorded])


def _kinds(shown: dict[str, Any]) -> ScreenTable:
    """What autograd saves, by the module that saves it first."""
    total = max(1, shown["memory"]["saved_bytes"])
    kinds = list(shown["saved_by_kind"].items())
    rest = sum(size for _, size in kinds[_MAX_KINDS:])
    rows = [*kinds[:_MAX_KINDS], *([("others", rest)] if rest else [])]
    columns = [Column("saved for backward in", left=True), Column("MiB"), Column("%")]
    return ScreenTable(columns, [(name, _mib(size), f"{100 * size / total:.1f}") for name, size in rows])


def _modules(shown: dict[str, Any]) -> ScreenTable:
    """A row for each module: those of all blocks together."""
    rows: dict[str, dict[str, int]] = {}
    outputs = {layer["index"]: layer["output_bytes"] for layer in shown["per_layer"]}
    held: set[int] = set()
    for layer in shown["per_layer"][1:]:
        row = rows.setdefault(
            _module_of(layer["name"]),
            dict.fromkeys(("times", "parameters", "output", "saved", "temporary", "flops", "moved", "generic"), 0),
        )
        row["times"] += 1
        row["parameters"] += layer["parameters"]
        row["output"] += layer["output_bytes"]
        saved = {*layer["saved_inputs"], *([layer["index"]] if layer["saves_output"] else [])} - held
        held |= saved
        row["saved"] += layer["saved_state_bytes"] + sum(outputs[index] for index in saved)
        row["temporary"] = max(row["temporary"], layer["forward_temporary_bytes"], layer["backward_temporary_bytes"])
        row["flops"] += layer["forward_flops"]
        row["moved"] += layer.get("operand_bytes", 0)
        row["generic"] += layer.get("generic_operand_bytes", 0)
    headings = ("runs", "parameters\nmillion", "output\nMiB", "saved\nMiB", "forward\nTFLOP")
    columns = [Column("module", left=True, shorten_to=27), *map(Column, headings)]
    columns.append(Column("temporary\nMiB, once", priority=1))
    cells = [_row(name, row) for name, row in rows.items()]
    if any(row["moved"] for row in rows.values()):  # of a captured script
        columns.append(Column("generic\n%"))
        cells = [(*cell, _percent(row)) for cell, row in zip(cells, rows.values(), strict=True)]
    return ScreenTable(columns, cells)


def _percent(row: dict[str, int]) -> str:
    """Of the bytes that a module's operators read and write, how much generic ones do."""
    return f"{100 * row['generic'] / row['moved']:.0f}" if row["generic"] else NOT_APPLICABLE


def _module_of(name: str) -> str:
    """A module's name without the numbers of its block and of its run, from the block on."""
    every = _NUMBER.sub(lambda match: "" if match[0].startswith(" ") else "*", name)
    _, star, within = every.partition("*")
    return f"*{within}" if star else every


def _row(name: str, row: dict[str, int]) -> tuple[str, ...]:
    return (
        name,
        str(row["times"]),
        format_significant(row["parameters"] / 1e6) if row["parameters"] else NOT_APPLICABLE,
        _mib(row["output"]),
        _mib(row["saved"]),
        format_significant(row["flops"] / 1e12) if row["flops"] else NOT_APPLICABLE,
        _mib(row["temporary"]),
    )


def _mib(size: int) -> str:
    return f"{size / _MIB:,.1f}" if size else NOT_APPLICABLE


def _gib(size: int) -> str:
    return f"{size / _GIB:,.2f} GiB"


def _flops(amount: int) -> str:
    return f"{format_significant(amount / 1e12)} TFLOP"
