"""The values of a machine that no source fixes, and the values to compare each with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic.fields import FieldInfo

from buddysim.base.errors import BuddysimError
from buddysim.machine.fields import declared_ends, zero_is
from buddysim.machine.model import Machine, component_sections, keys, policy_keys
from buddysim.machine.scheme_sections import section_name
from buddysim.machine.section import value_of
from buddysim.machine.units import plain_number

ASSUMED = "assumed"


@dataclass(frozen=True)
class Assumption:
    """A key whose value is assumed, or for which sources give more than one value.

    Attributes
    ----------
    key, value : the key, and its value as a machine file has it
    alternatives : other values, which the machine can have: those that sources give, else half and double
    source : of the value
    """

    key: str
    value: str
    alternatives: tuple[str, ...]
    source: str


def assumptions(machine: Machine, scheme_sections: Iterable[str]) -> list[Assumption]:
    """Return the assumed values of a machine that runs of a scheme read, in the order of a machine file.

    A key is assumed if the source of its value says so (`ASSUMED`), or if it declares its ends (`fields.key`).

    Parameters
    ----------
    scheme_sections : names of the scheme's sections of a machine file
    """
    read = {*scheme_sections, *(section_name(kind, machine.text(key)) for key, kind in policy_keys())}
    unread = component_sections().keys() - read
    presets = [Machine.load(name) for name in Machine.presets()]
    assumed = []
    for key, field in keys():
        source = machine.source(key)
        if key.rpartition(".")[0] in unread or not (ASSUMED in source or declared_ends(field) is not None):
            continue
        values = [text for text in _values_tried(machine, presets, key, field) if _is_possible(machine, key, text)]
        assumed.append(Assumption(key, machine.text(key), tuple(dict.fromkeys(values)), source))
    return assumed


def _values_tried(machine: Machine, presets: Sequence[Machine], key: str, field: FieldInfo) -> Iterator[str]:
    """The declared ends; else half and double, or all other choices.

    For a number of 0 they are those of the key that it stands for, else the largest of a preset.
    """
    ends, value = declared_ends(field), value_of(field)
    if ends:
        yield from ends
        return
    stands_for = zero_is(field)
    if stands_for is None or plain_number(machine.value(key), machine.clocks):
        stands_for = key
    tried = value.alternatives(machine.value(stands_for))
    yield from (_text(value.write(each)) for each in tried)
    if not tried:
        in_presets = [preset.value(key) for preset in presets]
        yield _text(value.write(max(in_presets, key=lambda each: plain_number(each, machine.clocks))))


def _text(written: object) -> str:
    return str(written).lower() if isinstance(written, bool) else str(written)


def _is_possible(machine: Machine, key: str, text: str) -> bool:
    """Whether a machine with another value of a key is one that can be simulated."""
    try:
        changed = machine.with_overrides({key: text})
    except BuddysimError:
        return False
    return changed.checksum != machine.checksum
