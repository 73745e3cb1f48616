"""Counters of kernels on a real GPU, compared with replays of the same programs, captured on a CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from buddysim.machine import Machine
from buddysim.validation.comparison import (
    CORRELATION,
    MEDIAN_ERROR,
    ComparedQuantity,
    ValidationOptions,
    ValidationReport,
)
from buddysim.validation.kernel import figure
from buddysim.validation.kernel.counter_data import FITTED, PROGRAMS, TESTED, load_measured_kernels
from buddysim.validation.kernel.document import HEAD, NOTES
from buddysim.validation.kernel.pairs import (
    POINT_COLUMNS,
    KernelPair,
    QuantityErrors,
    accelsim_errors,
    pair_kernels,
    quantity_errors,
)
from buddysim.validation.kernel.replays import load_replays, load_stored_replays, made_with, replay_captures

SUMMARY = "counters of a Quadro GV100 for kernels of PolyBench-GPU and Rodinia"
ORDER = 20

NAME, MACHINE = "kernels", "gv100"
PAGE = "hardware"
PAGE_HEAD = HEAD
INSTRUCTIONS_TOLERANCE, L2_TOLERANCE, DRAM_TOLERANCE = 0.15, 0.01, 0.05
MEAN_TOLERANCE, MEDIAN_TOLERANCE, CORRELATION_TOLERANCE, TOTALS_TOLERANCE = 0.30, 0.20, 0.02, 0.20


def compare(options: ValidationOptions) -> ValidationReport:
    """Compare replays of the captures, or the stored results of replays, with the counters.

    Raises
    ------
    BuddysimError
        where the machine is no preset, or captures or measurements can't be read
    """
    machine = Machine.load(MACHINE if options.machine is None else options.machine)
    if machine.name != MACHINE:
        unchecked = ComparedQuantity(NAME, machine.name, "every kernel", "all", note="no counters")
        return ValidationReport([unchecked], POINT_COLUMNS, [], machines=[MACHINE])
    measured = load_measured_kernels(options.data)
    if options.captures is None:
        results = load_stored_replays()
    elif options.captures.is_file():
        results = load_replays(options.captures)
    else:
        n_kernels = {name: len(measured[name]) for name in PROGRAMS if name in measured}
        results = list(replay_captures(options.captures, n_kernels, machine, options.progress))
    pairs = pair_kernels(measured, results)
    n_outdated = sum(result.made_with != made_with(machine) for result in results)
    note = f"{n_outdated} of the replays are of another model or machine file" if n_outdated else ""
    quantities = [*compared_quantities(pairs, note)]
    compared = [pair for pair in pairs if not pair.why_not]
    return ValidationReport(
        quantities,
        POINT_COLUMNS,
        [pair.row for pair in pairs],
        (lambda: figure.draw(compared)) if compared else None,
        [MACHINE],
    )


def page_notes() -> str:
    """Return the limits of the comparison."""
    return NOTES


def compared_quantities(pairs: Sequence[KernelPair], note: str) -> Iterator[ComparedQuantity]:
    """Yield the rows of the table of all comparisons."""
    compared = [pair for pair in pairs if not pair.why_not]
    if not compared:
        yield ComparedQuantity(NAME, MACHINE, "every kernel", "all", note="no kernel can be compared")
        return
    for subject, programs in (("all programs", PROGRAMS), ("fitted programs", FITTED), ("test programs", TESTED)):
        subset = [pair for pair in compared if pair.program in programs]
        if subset:
            yield from _quantities_of(subject, subset, note)


def _quantities_of(subject: str, pairs: Sequence[KernelPair], note: str) -> Iterator[ComparedQuantity]:
    """Yield the rows of some programs, each followed by Accel-Sim's for the same kernels."""
    is_test = subject.startswith("test")
    for label, name, tolerance in (
        ("instructions", "warp_instructions", INSTRUCTIONS_TOLERANCE),
        ("L2 sectors", "l2_sectors", L2_TOLERANCE),
        ("DRAM sectors", "dram_sectors", DRAM_TOLERANCE),
    ):
        errors = quantity_errors(pairs, name)
        yield _quantity(MACHINE, subject, f"{label}: median error", errors.median, tolerance, note)
        mean = errors.mean_of_program_medians
        yield _quantity(MACHINE, subject, f"{label}: mean of program medians", mean, None, note)
    cycles, accelsim = quantity_errors(pairs, "cycles"), accelsim_errors(pairs)
    metrics: tuple[tuple[str, float | None, tuple[float, float]], ...] = (
        ("cycles: mean error", MEAN_TOLERANCE, (cycles.mean, accelsim.mean)),
        ("cycles: median error", MEDIAN_TOLERANCE, (cycles.median, accelsim.median)),
        (
            "cycles: mean of program medians",
            None,
            (cycles.mean_of_program_medians, accelsim.mean_of_program_medians),
        ),
        ("cycles: error of totals", TOTALS_TOLERANCE, (cycles.totals, accelsim.totals)),
        (
            "cycles: log correlation",
            CORRELATION_TOLERANCE,
            (1 - cycles.log_correlation, 1 - accelsim.log_correlation),
        ),
    )
    for quantity, overall_tolerance, (error, accelsim_error) in metrics:
        limit = 2 * accelsim_error if is_test and overall_tolerance is not None else overall_tolerance
        yield _quantity(MACHINE, subject, quantity, error, limit, note)
        yield _quantity("Accel-Sim", subject, quantity, accelsim_error, None, "")


def _quantity(
    machine: str, subject: str, quantity: str, error: float, tolerance: float | None, note: str
) -> ComparedQuantity:
    is_correlation = quantity.endswith("correlation")
    kind, simulated = CORRELATION if is_correlation else MEDIAN_ERROR, 1 - error if is_correlation else None
    return ComparedQuantity(
        NAME, machine, subject, quantity, "", simulated, None, error, tolerance, note, error_kind=kind
    )


__all__ = ["NAME", "ORDER", "SUMMARY", "QuantityErrors", "compare"]
