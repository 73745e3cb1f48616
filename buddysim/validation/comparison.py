"""The result of a comparison, in one form for all of them: quantities, every point, and what the reference is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from buddysim.base.textfile import parse_toml

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Value = str | int | float | None

PASS, FAIL, UNCHECKED, NO_TOLERANCE, FITTED = "pass", "fail", "not checked", "no tolerance", "fitted"
HARDWARE, SIMULATOR, PAPER = "hardware", "simulator", "paper"
ERROR, MEDIAN_ERROR, CORRELATION, FACTOR = "error", "|error|", "1 - r", "factor - 1"
"""Kinds of errors: signed, unsigned, one less a correlation, and one less than a factor."""
_DATA = resources.files("buddysim.validation") / "data" / "references.toml"


@dataclass(frozen=True)
class ValidationOptions:
    """What to compare.

    Attributes
    ----------
    machine : name of the preset to compare; None: all
    data : a file of measurements that replaces the bundled ones; None: the bundled ones
    captures : a folder of captured programs, or a table of earlier replays; None: the stored results of replays
    progress : called with one line about each part that has been compared
    """

    machine: str | None = None
    data: Path | None = None
    captures: Path | None = None
    progress: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Reference:
    """Where the reference values of a comparison are from, and how independent of them the model is.

    Attributes
    ----------
    kind : ``hardware``, ``simulator`` or ``paper``
    description : a phrase for "reference: .."
    fitted : sentence: which parameters were fitted to which of the quantities
    changed : sentence: what of the model was changed in view of the quantities
    held_out : sentence: which quantities had no part in a fit or a change
    """

    kind: str
    description: str
    fitted: str
    changed: str
    held_out: str


@cache
def reference_of(comparison: str) -> Reference:
    """Return the reference of a comparison (``data/references.toml``)."""
    return Reference(**parse_toml(_DATA.read_text(encoding="utf-8"), _DATA.name)[comparison])


@dataclass(frozen=True)
class ComparedQuantity:
    """A row of the table of all comparisons.

    Attributes
    ----------
    comparison : name of the comparison
    machine : preset
    subject : what was compared, such as one curve
    quantity : which quantity of the subject
    unit : of `simulated` and `reference`
    simulated, reference : both values; None where the quantity is itself an error
    error : fraction, 0.05 for 5 %; None where nothing was compared
    tolerance : the largest error that passes; None: none was set
    note : remark for the table
    error_kind : ``error`` (signed), ``|error|`` (of medians, means and percentiles), ``1 - r`` (of correlations) or
        ``factor - 1``
    group : name of a group of rows that a screen joins into one line; empty: none
    """

    comparison: str
    machine: str
    subject: str
    quantity: str
    unit: str = ""
    simulated: float | None = None
    reference: float | None = None
    error: float | None = None
    tolerance: float | None = None
    note: str = ""
    error_kind: str = ERROR
    group: str = ""

    @property
    def status(self) -> str:
        """``pass``, ``fail``, ``no tolerance``, ``fitted`` (a key of the machine) or ``not checked``."""
        if self.error is None:
            return FITTED if self.quantity.startswith(FITTED) else UNCHECKED
        if self.tolerance is None:
            return NO_TOLERANCE
        return PASS if abs(self.error) <= self.tolerance else FAIL

    @property
    def row(self) -> tuple[Value, ...]:
        """A value for each of `buddysim.base.validation_table.COLUMNS` but the page."""
        return (
            self.comparison, self.machine, self.subject, self.quantity, self.unit, rounded(self.simulated),
            rounded(self.reference), reference_of(self.comparison).kind, rounded(self.error), rounded(self.tolerance),
            self.status, self.note,
        )  # fmt: skip


def rounded(value: float | None) -> float | None:
    """Round to five significant digits: what a table holds."""
    return None if value is None else float(f"{value:.5g}")


@dataclass(frozen=True)
class ValidationReport:
    """The result of a comparison.

    Attributes
    ----------
    quantities : rows of the table of all comparisons
    columns, rows : every point that was compared
    figure : plots the points; None: there is no figure
    machines : every machine that has reference values
    """

    quantities: Sequence[ComparedQuantity]
    columns: tuple[str, ...]
    rows: Sequence[tuple[Value, ...]]
    figure: Callable[[], Figure] | None = None
    machines: Sequence[str] = ()

    @property
    def has_results(self) -> bool:
        """Whether anything was compared."""
        return any(quantity.error is not None for quantity in self.quantities)
