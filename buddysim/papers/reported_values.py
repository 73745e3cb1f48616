"""The numbers that papers report: the entries of every ``reported.toml``."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from types import ModuleType
from typing import Any

import buddysim.papers
from buddysim.base.textfile import parse_toml

ReportedNumber = float | str | tuple[float, ...]


@dataclass(frozen=True)
class ReportedValue:
    """A number that a paper reports.

    Attributes
    ----------
    id : unique over all papers
    where : paper, section and figure; ``derived: ...`` where it follows from the text without standing in it
    value : in `unit`; a tuple is a range or a list; text is a finding that no number says
    what : the quantity
    rule : tolerance of the simulated value (`buddysim.papers.paper_comparison`)
    unit : ``""`` where it has none
    workspace : whether it includes the workspaces of cuDNN 4, which are unpublished
    contradicted : whether other figures of the same paper disagree with it
    note : shown in the comparison
    line : of the paper's text, where one was noted
    needs : inputs that nobody published: ``"sparsity"``, ``"accuracy"``, ``"codec times"``, ``"programs"``, ...
    """

    id: str
    where: str
    value: ReportedNumber
    what: str
    rule: str
    unit: str = ""
    workspace: bool = False
    contradicted: bool = False
    note: str = ""
    line: int = 0
    needs: tuple[str, ...] = ()


@cache
def paper_folders(document: str | None = None) -> tuple[ModuleType, ...]:
    """The papers' packages, in the order of their ``ORDER``; each has its short name as ``TITLE``.

    Parameters
    ----------
    document : only those that are compared in this document of docs/, which a paper names as ``DOCUMENT``
    """
    names = (module.name for module in pkgutil.iter_modules(buddysim.papers.__path__) if module.ispkg)
    papers = (import_module(f"buddysim.papers.{name}") for name in names)
    selected = (paper for paper in papers if document in (None, paper.DOCUMENT))
    return tuple(sorted(selected, key=lambda paper: paper.ORDER))


@cache
def reported_values(document: str | None = None) -> dict[str, ReportedValue]:
    """Every number by id, paper by paper: the entries in their order, then those read off figures.

    Parameters
    ----------
    document : as `paper_folders` has it
    """
    by_id: dict[str, ReportedValue] = {}
    for paper in paper_folders(document):
        for number in (*_entries(paper), *_digitized(paper)):
            if number.id in by_id:
                raise ValueError(f"{paper.__name__}: {number.id!r} is reported a second time")
            by_id[number.id] = number
    return by_id


def _entries(paper: ModuleType) -> Iterator[ReportedValue]:
    text = (resources.files(paper) / "reported.toml").read_text(encoding="utf-8")
    for entry in parse_toml(text, f"{paper.__name__}: reported.toml")["number"]:
        if isinstance(entry["value"], list):
            entry["value"] = tuple(map(float, entry["value"]))
        entry["needs"] = tuple(entry.get("needs", ()))
        yield ReportedValue(**entry)


def _digitized(paper: ModuleType) -> Iterator[ReportedValue]:
    """The numbers of a paper whose folder has a module ``digitized_figures``."""
    if any(module.name == "digitized_figures" for module in pkgutil.iter_modules(paper.__path__)):
        yield from import_module(f"{paper.__name__}.digitized_figures").figure_numbers()


def reported_value(id: str) -> Any:
    """The value of a number: a float, the two ends of a range, or text."""
    return reported_values()[id].value
