"""Comparison of a reported value of a paper with the simulated value: the rules, the error and the status."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from buddysim.papers.reported_values import ReportedNumber, ReportedValue
from buddysim.papers.simulated_values import SimulatedValue

TOLERANCE = 0.07  # fraction of the reported value; of percentages, 7 points
TENTH, POINTS, SHAPE = 0.10, 3.0, 2.0  # fraction of the reported value; percentage points; a factor

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
    "trained": "a property of the paper's own training, shown with the value of buddysim's training: no status",
    "input": "the simulator takes it as it is",
    "none": "nothing to compare with",
}
#: Rules whose tolerance is a fraction of the reported value, and that fraction.
_TOLERANCES = {"memory": TOLERANCE, "ratio": TOLERANCE, "tenth": TENTH}


@dataclass(frozen=True)
class PaperComparison:
    """A reported value of a paper, and the simulated value."""

    reported: ReportedValue
    simulated: SimulatedValue

    @property
    def error(self) -> str:
        """Error of the simulated value as the document shows it; ``""`` where an error has no meaning."""
        reported, value = self.reported, self.simulated.value
        if reported.rule in ("input", "none", "shape") or value is None or isinstance(value, str):
            return ""
        pairs = zip(_parts(reported.value), _parts(value), strict=True)
        if reported.unit == "%" and reported.rule != "exact":
            return ", ".join(f"{simulated - reference:+.1f} points" for reference, simulated in pairs)
        return ", ".join(_relative_error(reference, simulated) for reference, simulated in pairs)

    @property
    def status(self) -> str:
        """One of `STATUSES`."""
        rule = self.reported.rule
        if rule == "none":
            return CONTRADICTED if self.reported.contradicted else NOT_COMPARABLE
        if rule == "trained":
            return OTHER_TRAINING
        if self._is_within_tolerance():
            return INPUT if rule == "input" else REPRODUCED
        if self._has_shape():
            return SHAPE_ONLY
        if self.reported.contradicted:
            return CONTRADICTED
        return UNPUBLISHED_WORKSPACE if self.reported.workspace else NOT_REPRODUCED

    @property
    def row(self) -> tuple[str | float | None, ...]:
        """A value for each of `buddysim.base.validation_table.COLUMNS` but the page.

        Error and tolerance are fractions where both values are single numbers and the rule's tolerance is a fraction.
        """
        reported, simulated = self.reported, self.simulated.value
        tolerance = _TOLERANCES.get(reported.rule)
        error = None
        single = isinstance(reported.value, float) and isinstance(simulated, int | float)
        if tolerance is not None and single and reported.value:
            error = float(f"{simulated / reported.value - 1:.5g}")  # type: ignore[operator]
        note = "; ".join(text for text in (self.simulated.note, self.simulated.cause, reported.note) if text)
        return (
            reported.where.partition(" ")[0].rstrip(":,"), None, reported.where, reported.what, reported.unit,
            _cell(simulated), _cell(reported.value), "paper", error, None if error is None else tolerance,
            self.status.strip("*"), note,
        )  # fmt: skip

    def _is_within_tolerance(self) -> bool:
        value = self.simulated.value
        if value is None:
            return False
        if isinstance(self.reported.value, str) or isinstance(value, str):
            return value == self.reported.value
        return all(_meets(self.reported.rule, reference, simulated) for reference, simulated in self._pairs(value))

    def _has_shape(self) -> bool:
        value = self.simulated.value
        if self.reported.rule not in ("footprint", "tenth", "three-points") or value is None or isinstance(value, str):
            return False
        return all(_in_shape(self.reported.rule, reference, simulated) for reference, simulated in self._pairs(value))

    def _pairs(self, value: ReportedNumber) -> Iterator[tuple[float, float]]:
        return zip(_parts(self.reported.value), _parts(value), strict=True)


def _relative_error(reference: float, simulated: float) -> str:
    return f"{100 * (simulated / reference - 1):+.1f} %" if reference else f"{simulated:+g}"


def _cell(number: ReportedNumber | None) -> str | None:
    """A number to five significant digits, as a table holds it."""
    if number is None or isinstance(number, str):
        return number
    return ", ".join(f"{float(f'{part:.5g}'):g}" for part in _parts(number))


def _in_shape(rule: str, reference: float, simulated: float) -> bool:
    """Whether a number has the right sign and size; of a footprint ratio, what it is above 1."""
    if rule == "footprint":
        reference, simulated = reference - 1, simulated - 1
    return reference * simulated > 0 and 1 / SHAPE <= simulated / reference <= SHAPE


def _meets(rule: str, reference: float, simulated: float) -> bool:
    if rule in ("memory", "ratio", "footprint"):
        return abs(simulated / reference - 1) <= TOLERANCE
    if rule == "tenth":
        return abs(simulated / reference - 1) <= TENTH
    if rule == "three-points":
        return abs(simulated - reference) <= POINTS
    if rule == "points":
        return abs(simulated - reference) <= 100 * TOLERANCE
    if rule == "at-least":
        return simulated >= reference
    if rule == "at-most":
        return simulated <= reference
    if rule in ("exact", "input"):
        digits = len(f"{reference:g}".partition(".")[2])
        return abs(simulated - reference) < 10.0**-digits
    raise ValueError(f"rule {rule!r}: expected one of {', '.join(RULES)}")


def _parts(number: ReportedNumber) -> tuple[float, ...]:
    assert not isinstance(number, str)
    return number if isinstance(number, tuple) else (number,)
