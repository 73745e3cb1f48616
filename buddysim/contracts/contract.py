"""What is held to contracts, and what a contract is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from buddysim.base.boundary import inside
from buddysim.base.kinds import registry
from buddysim.base.terminal import one_line

_MAX_BREACHES = 3
_LONGEST_BREACH = 300


@dataclass(frozen=True)
class Subject:
    """What is held to contracts.

    Attributes
    ----------
    kind : its kind (`buddysim.base.kinds`)
    name : its name
    folder : where trials write files
    """

    kind: str
    name: str
    folder: Path

    @property
    def member(self) -> Any:
        """What the kind's registry has under the name."""
        return registry(self.kind).find(self.name)


@dataclass(frozen=True)
class Contract:
    """What a member of a kind promises.

    Attributes
    ----------
    promise : in words
    breaches : yields a text for each breach that a trial of a `Subject` finds
    hindrance : says why this installation can't try it; "" where it can
    safe : the contract is what lets trials of later ones run at all; after its breach none is tried
    """

    promise: str
    breaches: Callable[[Any], Iterator[str]]
    safe: bool = False
    hindrance: Callable[[Any], str] = lambda subject: ""

    def tried(self, subject: Subject) -> list[str]:
        """The first breaches of a subject; an error of its code is one."""
        return inside(
            lambda: list(islice(self.breaches(subject), _MAX_BREACHES)),
            lambda error: [one_line(f"{type(error).__name__}: {error}", _LONGEST_BREACH)],
        )
