"""Training: published peaks of memory, and what schemes cost and save, next to simulated values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from buddysim.machine import Machine
from buddysim.validation.comparison import MEDIAN_ERROR, ComparedQuantity, ValidationOptions, ValidationReport
from buddysim.validation.memory import document
from buddysim.validation.memory.compared_rows import ComparedRow, compared_layers, compared_trainings
from buddysim.validation.schemes import document as schemes_document
from buddysim.validation.schemes.compared_schemes import compared_schemes
from buddysim.validation.schemes.tolerances import scheme_quantities

NAME = "llm"
SUMMARY = "memory of training iterations and of single layers, cost of schemes, as published"
ORDER = 60
MACHINE = "a100-80"
PAGE_HEAD = document.HEAD
COLUMNS = ("row", "group", "printed", "kind", "simulated", "measured", "unit", "error_fraction", "reason")
ROW_TOLERANCE, MEDIAN_TOLERANCE, LAYER_TOLERANCE = 0.05, 0.02, 0.05


def compare(options: ValidationOptions) -> ValidationReport:
    """Simulate every row that can be set up; the rows are of several GPUs, most of them A100s."""
    if options.machine not in (None, MACHINE):
        Machine.load(options.machine)
        unchecked = ComparedQuantity(NAME, str(options.machine), "every row", "all", note="no such rows")
        return ValidationReport([unchecked], COLUMNS, [], machines=[MACHINE])
    trainings, layers = [*compared_trainings(options.progress)], [*compared_layers(options.progress)]
    schemes = [*compared_schemes(options.progress)]
    quantities = [
        *training_quantities(trainings), *scheme_quantities(NAME, MACHINE, schemes), *layer_quantities(layers)
    ]  # fmt: skip
    points = [
        (row.subject, row.group, row.printed, row.kind, _rounded(row.simulated), row.measured, row.unit,
         _rounded(row.error), row.reason)
        for row in (*trainings, *layers)
    ]  # fmt: skip
    return ValidationReport(quantities, COLUMNS, points, machines=[MACHINE])


def page_notes() -> str:
    """Return readings and causes, then the section of schemes."""
    return f"{document.notes()}\n\n{schemes_document.notes()}"


def training_quantities(rows: Sequence[ComparedRow]) -> Iterator[ComparedQuantity]:
    """Yield the simulated rows, the median of each source and that of all usable rows."""
    for row in rows:
        if row.error is not None:
            tolerance = ROW_TOLERANCE if row.is_usable else None
            yield ComparedQuantity(
                NAME, MACHINE, row.subject, "peak memory", row.unit, row.simulated, row.measured, row.error, tolerance
            )
    usable = [row for row in rows if row.is_usable and row.error is not None]
    for source in dict.fromkeys(row.group for row in usable):
        yield _median(source, [row for row in usable if row.group == source], None)
    yield _median("usable rows", usable, MEDIAN_TOLERANCE)


def layer_quantities(rows: Sequence[ComparedRow]) -> Iterator[ComparedQuantity]:
    """Yield the median of each script and provider, and that of all layers."""
    simulated = [row for row in rows if row.error is not None]
    for group in dict.fromkeys(row.group for row in simulated):
        yield _median(group, [row for row in simulated if row.group == group], None)
    yield _median("layers", simulated, LAYER_TOLERANCE)


def _median(subject: str, rows: Sequence[ComparedRow], tolerance: float | None) -> ComparedQuantity:
    error = median(abs(row.error) for row in rows if row.error is not None) if rows else None
    note = f"{len(rows)} rows"
    return ComparedQuantity(
        NAME, MACHINE, subject, "median error", "", None, None, error, tolerance, note, MEDIAN_ERROR
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")
