"""A number of a paper compared with the simulator's: the rules, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.papers.reported_values import ReportedNumber, ReportedValue
from buddysim.papers.simulated_values import SimulatedValue

TOLERANCE = 0.07  # of a number, or of 100 %
TENTH, POINTS, SHAPE = 0.10, 3.0, 2.0  # of a number, percentage points, a factor

REPRODUCED = "reproduced"
SHAPE_ONLY = "shape only"
NOT_REPRODUCED = "**not reproduced**"
UNPUBLISHED_WORKSPACE = "inconclusive: includes unpublished workspace"
CONTRADICTED = "inconclusive: the paper contradicts itself"
OTHER_TRAINING = "not comparable: another training"
INPUT = "an input"
NOT_COMPARABLE = "not comparable"
STATUSES = (
    REPRODUCED,
    SHAPE_ONLY,
    NOT_REPRODUCED,
    UNPUBLISHED_WORKSPACE,
    CONTRADICTED,
    OTHER_TRAINING,
    INPUT,
    NOT_COMPARABLE,
)

RULES = {
    "memory": "within 7 % of it",
    "ratio": "within 7 % of it",
    "footprint": "within 7 % of it; its shape: what is saved within a factor of 2",
    "tenth": "within 10 % of it; its shape: within a factor of 2",
    "three-points": "within 3 percentage points of it; its shape: within a factor of 2",
    "points": "within 7 percentage points of it",
    "exact": "equal at the digits given",
    "at-least": "the bound holds",
    "at-most": "the bound holds",
    "shape": "the same finding",
    "trained": "a property of the paper's own training, shown with ours: no verdict",
    "input": "the simulator takes it as it is",
    "none": "nothing to compare with",
}
#: Rules of a share of the number, and how far off it may be.
_SHARES = {"memory": TOLERANCE, "ratio": TOLERANCE, "tenth": TENTH}


@dataclass(frozen=True)
class PaperComparison:
    """A number of a paper, and the simulator's."""

    stated: ReportedValue
    measured: SimulatedValue

    @property
    def error(self) -> str:
        """How far off the simulator is, as the document shows it; ``""`` where that has no meaning."""
        stated, value = self.stated, self.measured.value
        if stated.rule in ("input", "none", "shape") or value is None or isinstance(value, str):
            return ""
        pairs = zip(_parts(stated.value), _parts(value), strict=True)
        if stated.unit == "%" and stated.rule != "exact":
            return ", ".join(f"{ours - theirs:+.1f} points" for theirs, ours in pairs)
        return ", ".join(f"{100 * (ours / theirs - 1):+.1f} %" if theirs else f"{ours:+g}" for theirs, ours in pairs)

    @property
    def verdict(self) -> str:
        """One of `STATUSES`."""
        rule = self.stated.rule
        if rule == "none":
            return CONTRADICTED if self.stated.contradicted else NOT_COMPARABLE
        if rule == "trained":
            return OTHER_TRAINING
        if self._holds():
            return INPUT if rule == "input" else REPRODUCED
        if self._has_shape():
            return SHAPE_ONLY
        if self.stated.contradicted:
            return CONTRADICTED
        return UNPUBLISHED_WORKSPACE if self.stated.workspace else NOT_REPRODUCED

    @property
    def row(self) -> tuple[str | float | None, ...]:
        """A value for each of `buddysim.base.validation_table.COLUMNS` but the page; `reference` is the paper's.

        The error and its goal are shares where both sides are single numbers, and the rule is one of a share.
        """
        stated, ours = self.stated, self.measured.value
        goal = _SHARES.get(stated.rule)
        error = None
        if goal is not None and isinstance(stated.value, float) and isinstance(ours, int | float) and stated.value:
            error = float(f"{ours / stated.value - 1:.5g}")
        note = "; ".join(text for text in (self.measured.note, self.measured.cause, stated.note) if text)
        return (
            stated.where.partition(" ")[0].rstrip(":,"), None, stated.where, stated.what, stated.unit, _cell(ours),
            _cell(stated.value), "paper", error, None if error is None else goal, self.verdict.strip("*"), note,
        )  # fmt: skip

    def _holds(self) -> bool:
        stated, value = self.stated, self.measured.value
        if value is None:
            return False
        if isinstance(stated.value, str) or isinstance(value, str):
            return value == stated.value
        pairs = zip(_parts(stated.value), _parts(value), strict=True)
        return all(_meets(stated.rule, theirs, ours) for theirs, ours in pairs)

    def _has_shape(self) -> bool:
        stated, value = self.stated, self.measured.value
        if stated.rule not in ("footprint", "tenth", "three-points") or value is None or isinstance(value, str):
            return False
        pairs = zip(_parts(stated.value), _parts(value), strict=True)
        return all(_in_shape(stated.rule, theirs, ours) for theirs, ours in pairs)


def _cell(amount: ReportedNumber | None) -> str | None:
    """A number to five significant digits, as a table holds it."""
    if amount is None or isinstance(amount, str):
        return amount
    return ", ".join(f"{float(f'{part:.5g}'):g}" for part in _parts(amount))


def _in_shape(rule: str, theirs: float, ours: float) -> bool:
    """Whether a number has the right sign and size; of a footprint ratio, what it is above 1."""
    if rule == "footprint":
        theirs, ours = theirs - 1, ours - 1
    return theirs * ours > 0 and 1 / SHAPE <= ours / theirs <= SHAPE


def _meets(rule: str, theirs: float, ours: float) -> bool:
    if rule in ("memory", "ratio", "footprint"):
        return abs(ours / theirs - 1) <= TOLERANCE
    if rule == "tenth":
        return abs(ours / theirs - 1) <= TENTH
    if rule == "three-points":
        return abs(ours - theirs) <= POINTS
    if rule == "points":
        return abs(ours - theirs) <= 100 * TOLERANCE
    if rule == "at-least":
        return ours >= theirs
    if rule == "at-most":
        return ours <= theirs
    if rule in ("exact", "input"):
        digits = len(f"{theirs:g}".partition(".")[2])
        return abs(ours - theirs) < 10.0**-digits
    raise ValueError(f"rule {rule!r}: expected one of {', '.join(RULES)}")


def _parts(amount: ReportedNumber) -> tuple[float, ...]:
    assert not isinstance(amount, str)
    return amount if isinstance(amount, tuple) else (amount,)
