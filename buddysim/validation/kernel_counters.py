"""Kernels of real programs on a real GPU: its counters beside replays of the same programs, captured on a CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from buddysim.machine import Machine
from buddysim.validation.comparison import ComparedQuantity, ValidationOptions, ValidationReport
from buddysim.validation.kernel import figure
from buddysim.validation.kernel.counter_data import FITTED, PROGRAMS, TESTED, measured_kernels
from buddysim.validation.kernel.document import document
from buddysim.validation.kernel.pairs import (
    POINT_COLUMNS,
    KernelPair,
    QuantityErrors,
    accelsim_errors,
    pair_kernels,
    quantity_errors,
)
from buddysim.validation.kernel.replays import from_file, made_with, replays, stored_replays

SUMMARY = "counters of a Quadro GV100 for kernels of PolyBench-GPU and Rodinia"
ORDER = 20

NAME, MACHINE = "kernels", "gv100"
INSTRUCTIONS_TOLERANCE, L2_TOLERANCE, DRAM_TOLERANCE = 0.15, 0.01, 0.05
MEAN_TOLERANCE, MEDIAN_TOLERANCE, CORRELATION_TOLERANCE, TOTALS_TOLERANCE = 0.30, 0.20, 0.02, 0.20


def compare(options: ValidationOptions) -> ValidationReport:
    """Replays the captures, or takes the stored results of replays, and holds them against the counters.

    Raises
    ------
    BuddysimError
        where the machine is no preset, or captures or measurements can't be read
    """
    machine = Machine.load(MACHINE if options.machine is None else options.machine)
    if machine.name != MACHINE:
        return ValidationReport(
            [ComparedQuantity(NAME, machine.name, "every kernel", "all", note="no counters")], POINT_COLUMNS, []
        )
    counted = measured_kernels(options.data)
    if options.captures is None:
        results = stored_replays()
    elif options.captures.is_file():
        results = from_file(options.captures)
    else:
        expected = {name: len(counted[name]) for name in PROGRAMS if name in counted}
        results = list(replays(options.captures, expected, machine, options.progress))
    pairs = pair_kernels(counted, results)
    old = sum(one.made_with != made_with(machine) for one in results)
    quantities = [
        *compared_quantities(pairs, f"{old} of the replays are of another model or machine file" if old else "")
    ]
    kept = [pair for pair in pairs if not pair.why_not]
    return ValidationReport(
        quantities,
        POINT_COLUMNS,
        [pair.row for pair in pairs],
        [*document(pairs, quantities, old)],
        (lambda: figure.draw(kept)) if kept else None,
    )


def compared_quantities(pairs: Sequence[KernelPair], note: str) -> Iterator[ComparedQuantity]:
    """The rows of the table of all comparisons."""
    kept = [pair for pair in pairs if not pair.why_not]
    if not kept:
        yield ComparedQuantity(NAME, MACHINE, "every kernel", "all", note="no kernel can be compared")
        return
    for subject, programs in (("all programs", PROGRAMS), ("fitted programs", FITTED), ("test programs", TESTED)):
        own = [pair for pair in kept if pair.program in programs]
        if own:
            yield from _of(subject, own, note)


def _of(subject: str, pairs: Sequence[KernelPair], note: str) -> Iterator[ComparedQuantity]:
    """The rows of some programs; what Accel-Sim has on the same kernels is beside them."""
    is_test = subject.startswith("test")
    for name, quantity, tolerance in (
        ("warp instructions", "warp_instructions", INSTRUCTIONS_TOLERANCE),
        ("L2 sectors", "l2_sectors", L2_TOLERANCE),
        ("DRAM sectors", "dram_sectors", DRAM_TOLERANCE),
    ):
        one = quantity_errors(pairs, quantity)
        yield ComparedQuantity(
            NAME, MACHINE, subject, f"{name}: median error", error=one.median, tolerance=tolerance, note=note
        )
        yield ComparedQuantity(
            NAME, MACHINE, subject, f"{name}: mean of program medians", error=one.of_programs, note=note
        )
    ours, theirs = quantity_errors(pairs, "cycles"), accelsim_errors(pairs)
    measures: tuple[tuple[str, float | None, tuple[float, float]], ...] = (
        ("cycles: mean error", MEAN_TOLERANCE, (ours.mean, theirs.mean)),
        ("cycles: median error", MEDIAN_TOLERANCE, (ours.median, theirs.median)),
        ("cycles: mean of program medians", None, (ours.of_programs, theirs.of_programs)),
        ("cycles: error of program totals", TOTALS_TOLERANCE, (ours.totals, theirs.totals)),
        ("cycles: 1 - log correlation", CORRELATION_TOLERANCE, (1 - ours.log_correlation, 1 - theirs.log_correlation)),
    )
    for measure, aim, (mine, other) in measures:
        chosen = 2 * other if is_test and aim is not None else aim
        yield ComparedQuantity(NAME, MACHINE, subject, measure, error=mine, tolerance=chosen, note=note)
        yield ComparedQuantity(NAME, "Accel-Sim", subject, measure, error=other)


__all__ = ["NAME", "ORDER", "SUMMARY", "QuantityErrors", "compare"]
