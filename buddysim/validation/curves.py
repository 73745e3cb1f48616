"""Latency and bandwidth curves of microbenchmarks on real GPUs, beside the same microbenchmarks replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.machine import Machine
from buddysim.machine.presets import is_path
from buddysim.validation.comparison import ComparedQuantity, ValidationOptions, ValidationReport, Value
from buddysim.validation.curve import curve_data, figure
from buddysim.validation.curve.card_curves import CardCurves, CurveReplay
from buddysim.validation.curve.causes import causes
from buddysim.validation.curve.curve_data import Card, MeasuredCurve
from buddysim.validation.curve.document import document
from buddysim.validation.curve.fit import fit
from buddysim.validation.curve.metrics import KNEE_TOLERANCE, MEDIAN_TOLERANCE, P90_TOLERANCE, percentile
from buddysim.validation.curve.replays import replays

SUMMARY = "latency and bandwidth curves of gpu-benches on V100, A100, H200 and GH200"
ORDER = 10

NAME = "curves"
COLUMNS = ("machine", "card", "source", "benchmark", "x", "measured", "simulated", "error_fraction", "fitted")


def compare(options: ValidationOptions) -> ValidationReport:
    """Replays every curve of the machine, or of all machines.

    Raises
    ------
    BuddysimError
        where there is no such machine, or the measurements can't be read
    """
    presets = Machine.presets()
    if options.machine is not None:
        Machine.load(options.machine)  # says what is wrong with the name
        presets = [options.machine]
    known, every = curve_data.cards(), curve_data.curves(options.data)
    if options.machine is not None and is_path(options.machine):  # 'machines measure' wrote it beside the table
        own = Machine.load(options.machine)
        known[own.name] = Card(own.name, options.machine, own.description, {}, {})
    strange = sorted({curve.card for curve in every} - set(known))
    if strange:
        raise BuddysimError(
            f"{options.data}: gpu: {shortened(strange[0])} is not a card: expected one of {', '.join(known)}"
        )
    found = [
        of_card(card, [curve for curve in every if curve.card == card.name], options)
        for card in known.values()
        if card.machine in presets and any(curve.card == card.name for curve in every)
    ]
    quantities = [row for one in found for row in compared_quantities(one)]
    quantities += [
        ComparedQuantity(NAME, name, "every curve", "all", note="no curve of such a card")
        for name in presets
        if name not in {one.card.machine for one in found}
    ]
    return ValidationReport(
        quantities,
        COLUMNS,
        [row for one in found for row in rows(one)],
        [*document(found, quantities)],
        (lambda: figure.draw(drawn(found))) if found else None,
    )


def of_card(card: Card, curves: Sequence[MeasuredCurve], options: ValidationOptions) -> CardCurves:
    """Fits a card's machine, and replays its curves."""
    machine = card.at_its_clocks()
    fitted = fit(machine, curves)
    done = []
    for curve in curves:
        points = replays(fitted.machine, curve)
        if points:
            done.append(CurveReplay(curve, fitted.machine, points, fitted.used.get(curve.name, frozenset())))
            options.progress(f"{curve.name}: median error {percentile(done[-1].errors, 0.5):.1%}")
    return CardCurves(card, fitted, done, list(causes(fitted.machine, curves)))


def compared_quantities(one: CardCurves) -> Iterator[ComparedQuantity]:
    """The rows of a card in the table of all comparisons."""
    for key, value in one.fit.keys.items():
        preset = Machine.load(one.card.machine).text(key)
        yield ComparedQuantity(
            NAME, one.card.machine, one.card.name, f"fitted {key}", note=f"{value}; the preset has {preset}"
        )
    for curve in one.curves:

        def row(
            quantity: str, error: float, tolerance: float | None, curve: CurveReplay = curve, **more: object
        ) -> ComparedQuantity:
            return ComparedQuantity(
                NAME,
                one.card.machine,
                curve.curve.name,
                quantity,
                error=error,
                tolerance=tolerance,
                **more,  # type: ignore[arg-type]
            )

        yield row("median error", percentile(curve.errors, 0.5), MEDIAN_TOLERANCE)
        yield row("90th percentile of errors", percentile(curve.errors, 0.9), P90_TOLERANCE)
        if curve.held_out and len(curve.held_out) < len(curve.errors):
            note = f"{len(curve.held_out)} of {len(curve.errors)} points"
            yield row("median error of points not fitted", percentile(curve.held_out, 0.5), None, note=note)
        for level, theirs, ours in curve.knees():
            yield row(
                f"knee behind the {level}", 1.0 if ours is None else ours / theirs - 1, KNEE_TOLERANCE,
                unit="KiB", simulated=ours, reference=theirs, note="" if ours else "the replay has no such knee",
            )  # fmt: skip


def rows(one: CardCurves) -> Iterator[tuple[Value, ...]]:
    """Every point, for the CSV file."""
    for curve in one.curves:
        for (x, theirs, ours), error in zip(curve.points, curve.errors, strict=True):
            yield (
                one.card.machine, one.card.name, curve.curve.source, curve.curve.benchmark, x, theirs,
                float(f"{ours:.5g}"), float(f"{error:.3g}"), int(x in curve.fitted),
            )  # fmt: skip


def drawn(found: Sequence[CardCurves]) -> list[figure.Panel]:
    """What the figure shows: a panel for each benchmark and card."""
    return [
        figure.Panel(f"{one.card.name}: {curve.curve.benchmark}", curve.curve.source, curve.points)
        for one in found
        for curve in one.curves
    ]
