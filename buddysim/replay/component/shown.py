"""Rows that a scheme adds to the screen of `run`, as plain data: `report` prints them, `explain` defines labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["bytes", "count", "fraction", "hits", "wait", "title", "resource", "text"]


@dataclass(frozen=True)
class ShownRow:
    """A row of the screen of `run`.

    Attributes
    ----------
    section : title of the section; one that no other scheme has comes behind the memory footprint; `allocations`: a
        column of that table, where a result of the scheme is shown
    label : text on the screen, without units
    kind : how the value is printed; `hits`: hits and MSHR merges, each of all lookups; `wait`: times of a histogram;
        `title`: the label is the title of the section; `resource`: the name of a utilization in `bottleneck`;
        `text`: as it is, in `allocations` alone
    counters : names of the counters from which it is computed; for `hits`: hits, merges, lookups
    text : definition of the label, one sentence
    note : text in the column of notes
    where : counter that is 0 where the row has no value; empty: the last of `counters`
    """

    section: str
    label: str
    kind: Kind
    counters: tuple[str, ...]
    text: str
    note: str = ""
    where: str = ""
