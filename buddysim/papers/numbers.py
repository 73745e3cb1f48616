"""Numbers that the papers on training state, beside ours: what each is held to, and the verdict."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).with_name("reference.toml")

WITHIN = 0.07  # of a number, or of 100 %

REPRODUCED = "reproduced"
NOT_REPRODUCED = "**not reproduced**"
BESIDE = "beside: holds unpublished workspace"
CONTRADICTED = "beside: the paper contradicts itself"
OTHER_TRAINING = "not comparable: other training"
TAKEN_OVER = "taken over"
NOT_COMPARABLE = "not comparable"
VERDICTS = (REPRODUCED, NOT_REPRODUCED, BESIDE, CONTRADICTED, OTHER_TRAINING, TAKEN_OVER, NOT_COMPARABLE)

Amount = float | str | tuple[float, ...]


@dataclass(frozen=True)
class Number:
    """A number of a paper: see the head of reference.toml."""

    id: str
    place: str
    value: Amount
    what: str
    rule: str
    unit: str = ""
    workspace: bool = False
    contradicted: bool = False
    note: str = ""


@dataclass(frozen=True)
class Ours:
    """What the simulator gives for it.

    Attributes
    ----------
    value : in the number's unit; None where there is nothing to compare
    said : what belongs beside it: the single networks, the implied workspace
    cause : why it is off, quantified; shown where it isn't reproduced
    """

    value: Amount | None
    said: str = ""
    cause: str = ""


@dataclass(frozen=True)
class Judged:
    """A number, ours, and the verdict."""

    number: Number
    ours: Ours

    @property
    def error(self) -> str:
        """How far off ours is, as the page shows it."""
        number, ours = self.number, self.ours.value
        if number.rule in ("input", "none", "shape") or ours is None or isinstance(ours, str):
            return ""
        pairs = zip(_ends(number.value), _ends(ours), strict=True)
        if number.unit == "%" and number.rule != "exact":
            return ", ".join(f"{mine - theirs:+.1f} points" for theirs, mine in pairs)
        return ", ".join(f"{100 * (mine / theirs - 1):+.1f} %" if theirs else f"{mine:+g}" for theirs, mine in pairs)

    @property
    def verdict(self) -> str:
        """One of the words above."""
        rule = self.number.rule
        if rule == "none":
            return CONTRADICTED if self.number.contradicted else NOT_COMPARABLE
        if rule == "trained":
            return OTHER_TRAINING
        if self._holds():
            return TAKEN_OVER if rule == "input" else REPRODUCED
        if self.number.contradicted:
            return CONTRADICTED
        return BESIDE if self.number.workspace else NOT_REPRODUCED

    def _holds(self) -> bool:
        number, ours = self.number, self.ours.value
        if ours is None:
            return False
        if isinstance(number.value, str) or isinstance(ours, str):
            return ours == number.value
        return all(
            _within(number.rule, theirs, mine) for theirs, mine in zip(_ends(number.value), _ends(ours), strict=True)
        )


def _within(rule: str, theirs: float, mine: float) -> bool:
    if rule in ("memory", "ratio"):
        return abs(mine / theirs - 1) <= WITHIN
    if rule == "points":
        return abs(mine - theirs) <= 100 * WITHIN
    if rule == "at-least":
        return mine >= theirs
    if rule == "at-most":
        return mine <= theirs
    if rule in ("exact", "input"):
        digits = len(f"{theirs:g}".partition(".")[2])
        return abs(mine - theirs) < 10**-digits
    raise ValueError(f"rule {rule!r}")


def _ends(amount: Amount) -> tuple[float, ...]:
    assert not isinstance(amount, str)
    return amount if isinstance(amount, tuple) else (amount,)


def numbers() -> list[Number]:
    """All of them, in the order of the file."""
    found = tomllib.loads(REFERENCE.read_text(encoding="utf-8"))["number"]
    return [Number(**{key: tuple(map(float, v)) if isinstance(v, list) else v for key, v in n.items()}) for n in found]


Measure = Callable[[Any], Ours]
MEASURES: dict[str, Measure] = {}


def measures(*ids: str) -> Callable[[Callable[..., Ours]], Callable[..., Ours]]:
    """Marks a function that gives ours for some ids; it is called with the runs, and the id where it has several."""

    def mark(function: Callable[..., Ours]) -> Callable[..., Ours]:
        for id in ids:
            MEASURES[id] = function if len(ids) == 1 else (lambda runs, id=id: function(runs, id))
        return function

    return mark
