"""Writes docs/reference/machine-keys.md from the sections of a machine file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from pydantic.fields import FieldInfo

from buddysim.base.kinds import registry
from buddysim.base.markdown import wrap_markdown
from buddysim.machine import Machine
from buddysim.machine.model import own_keys
from buddysim.machine.scheme_sections import scheme_sections
from buddysim.machine.section import Section, default_text, field_keys, value_of
from buddysim.machine.training import shared_links
from buddysim.machine.training_table import HostLinkConfig, TrainingConfig
from tools.reference import cell, head, table

_HEAD = """
Every key of a machine file: unit, default, range, meaning, and the rules between keys.
[Describe a machine](../how-to/describe-a-machine.md) shows how to write a file.
[Presets](../explanation/machine-presets.md) explains where their figures come from. `run` reads all sections but
`[training]`; `train` reads `[training]` alone, and a file may consist of it.

A key without a default (`-`) is required, unless the preset in `base` has it. `[sources]` names the source of a key's
figure, or of all keys of a section in the file, and may be left out.

## Quantities

A quantity is a string of a number and a unit. Integers, numbers and switches are plain values. Cycles are those of
`[clock]`. A conversion is exact, then rounded once to a picosecond.

| kind | units |
|---|---|
| size | `B`, `KiB`, `MiB`, `GiB`, `TiB` (powers of 1024); `kB`, `MB`, `GB`, `TB` (powers of 1000) |
| time | `ps`, `ns`, `us`, `ms`, `s`, `core_cycles`, `dram_cycles` |
| frequency | `Hz`, `kHz`, `MHz`, `GHz` |
| rate of operations | `FLOPS`, `GFLOPS`, `TFLOPS`, `PFLOPS` |
| bandwidth | a size unit per second (`GB/s`, `GiB/s`), `B/core_cycle`, `B/dram_cycle` |

A wrong unit or an unknown key is an error of one line:

```
buddysim: error: --set: l2.siez: unknown key (nearest: l2.size)
buddysim: error: mine.toml: link.bandwidth: '75 Gb/s' is not a bandwidth: 'Gb/s' is not the unit of a
bandwidth; expected a number and one of B/s, KiB/s, ...
```
"""
_LOAD_TO_USE = """
A load-to-use latency is that of an idle machine: from the issue of a load to the issue of the instruction that uses it.
Queueing delays add to it. `dram.load_to_use` is for a bank without an open row. With `l2.partitions = 2`,
`l2.load_to_use` and `dram.load_to_use` are for a line of the SM's local partition.
"""
_SCHEMES = """
A section below belongs to one replay scheme; each of its keys has a default. The scheme of a plug-in may have a
section, too: `python -m buddysim list replay-scheme NAME` prints its keys.
"""
_LINKS = """
Every machine has these links to the host. A machine file may add others, `[training.links.NAME]`; `training.link`
selects one. Both directions are independent.
"""


def machine_page() -> str:
    """Return the page: a table for each section, then the rules between sections."""
    parts = [head("Machine keys"), _HEAD]
    for name, keys in groupby(own_keys(), lambda item: item[0].rpartition(".")[0]):
        parts.append(f"\n## {f'`[{name}]`' if name else 'Top level'}\n")
        parts += _section(name, keys, _class_of(name))
    parts += ["\n## Sections of replay schemes\n", _SCHEMES]
    for name, section in scheme_sections().items():
        parts.append(f"\n### `[{name}]`\n")
        parts += _section(name, field_keys(section, f"{name}."), section)
    training = [(f"training.{name}", field) for name, field in TrainingConfig.model_fields.items() if name != "links"]
    links = [(f"training.links.NAME.{name}", field) for name, field in HostLinkConfig.model_fields.items()]
    parts += ["\n## `[training]`\n", *_section("training", training, TrainingConfig)]
    parts += ["\n## `[training.links.NAME]`\n", _LINKS, _keys(links), _links()]
    parts += ["\n## Rules between sections\n", _LOAD_TO_USE, _rules(Machine)]
    return wrap_markdown("".join(parts))


def _class_of(name: str) -> Any:
    """Return the class of a section by its dotted name."""
    section: Any = Machine
    for part in filter(None, name.split(".")):
        section = section.model_fields[part].annotation
    return section


def _section(name: str, keys: Iterable[tuple[str, FieldInfo]], section: type[Section]) -> Iterator[str]:
    if name:
        yield f"\n{(section.__doc__ or '').partition(chr(10))[0]}\n"
    keys = list(keys)
    yield _keys(keys)
    if name:
        yield _rules(section)
    for key, field in keys:
        if kind := value_of(field).members:
            yield f"\nValues of `{key}`:\n\n"
            yield "".join(f"- `{member}`: {one.SUMMARY}\n" for member, one in registry(kind).items())


def _rules(section: Any) -> str:
    return "\n" + "".join(f"- {rule}\n" for rule in section.RULES) if section.RULES else ""


def _keys(keys: Iterable[tuple[str, FieldInfo]]) -> str:
    rows = []
    for key, field in keys:
        value = value_of(field)
        allowed = ", ".join(registry(value.members).names()) if value.members else value.allowed
        if value.kind in ("name", "switch"):
            allowed = ", ".join(f"`{name}`" for name in allowed.split(", "))
        rows.append((f"`{key}`", value.kind, _default(field), allowed, cell(field.description or "")))
    return table(("key", "kind", "default", "range", "meaning"), rows)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "-"
    text = default_text(field)
    return text if field.default is None else f"`{text}`"


def _links() -> str:
    rows = [
        (f"`{name}`", link["d2h_bandwidth"], link["h2d_bandwidth"], cell(link["source"]))
        for name, link in shared_links().items()
    ]
    return table(("link", "to the host", "to the GPU", "source"), rows)
