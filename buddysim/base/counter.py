"""Definitions of the counters of results, in the package whose code counts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Counter:
    """The definition of one counter.

    Attributes
    ----------
    name : key in results, for example ``l2.fills``
    unit : unit of its value; empty for text
    text : one sentence that begins with a noun and stands alone
    section : heading under which lists and pages show it
    laws : equations between counters that hold in every result and name this one
    """

    name: str
    unit: str
    text: str
    section: str
    laws: tuple[str, ...] = ()


def define(sections: Mapping[str, Mapping[str, tuple[str, str]]], laws: tuple[str, ...] = ()) -> dict[str, Counter]:
    """Return the counters by name, in order.

    Parameters
    ----------
    sections : heading -> name -> (unit, text)
    laws : equations with the counters' names in backticks
    """
    return {counter.name: counter for counter in _counters(sections, laws)}


def _counters(sections: Mapping[str, Mapping[str, tuple[str, str]]], laws: tuple[str, ...]) -> Iterator[Counter]:
    for section, rows in sections.items():
        for name, (unit, text) in rows.items():
            yield Counter(name, unit, text, section, tuple(law for law in laws if f"`{name}`" in law))
