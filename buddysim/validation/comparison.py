"""What a comparison finds: judged quantities, in one form for all comparisons, and what there is to show besides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Value = str | int | float | None

MET, MISSED, UNCHECKED, SHOWN, FITTED = "met", "missed", "not checked", "no goal", "fitted"


@dataclass(frozen=True)
class ValidationOptions:
    """What to compare.

    Attributes
    ----------
    machine : name of the preset to compare; None: all
    data : a file of measurements in place of those that come along; None: those
    captures : a folder of captured programs, or a table of earlier replays; None: the stored results of replays
    progress : gets a line about each part that has been compared
    """

    machine: str | None = None
    data: Path | None = None
    captures: Path | None = None
    progress: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class ComparedQuantity:
    """A row of the table of all comparisons.

    Attributes
    ----------
    comparison : its name
    machine : preset
    subject : what was compared, such as one curve
    quantity : what of it
    unit : of `simulated` and `measured`
    simulated, measured : both sides; None where the quantity is itself an error
    error : share, 0.05 for 5 %; None where nothing was compared
    goal : the largest error that is good; None: none was set
    note : what is to say
    """

    comparison: str
    machine: str
    subject: str
    quantity: str
    unit: str = ""
    simulated: float | None = None
    measured: float | None = None
    error: float | None = None
    goal: float | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        """``met``, ``missed``, ``no goal``, ``fitted`` (a key of the machine) or ``not checked``."""
        if self.error is None:
            return FITTED if self.quantity.startswith(FITTED) else UNCHECKED
        if self.goal is None:
            return SHOWN
        return MET if abs(self.error) <= self.goal else MISSED

    @property
    def row(self) -> tuple[Value, ...]:
        """A value for each of `buddysim.base.validation_table.COLUMNS` but the page."""
        return (
            self.comparison, self.machine, self.subject, self.quantity, self.unit, rounded(self.simulated),
            rounded(self.measured), rounded(self.error), rounded(self.goal), self.verdict, self.note,
        )  # fmt: skip


def rounded(value: float | None) -> float | None:
    """To five significant digits: what a table holds."""
    return None if value is None else float(f"{value:.5g}")


@dataclass(frozen=True)
class ValidationReport:
    """What a comparison found.

    Attributes
    ----------
    judged : the quantities
    columns, rows : every point that was compared
    document : lines of its part of the page, Markdown
    picture : draws the figure; None: there is none
    """

    judged: Sequence[ComparedQuantity]
    columns: tuple[str, ...]
    rows: Sequence[tuple[Value, ...]]
    document: Sequence[str] = field(default_factory=tuple)
    picture: Callable[[], Figure] | None = None
