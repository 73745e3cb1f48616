"""Latency and bandwidth curves of microbenchmarks on real GPUs, compared with replays of the same microbenchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.machine import Machine
from buddysim.machine.presets import is_path
from buddysim.validation.comparison import MEDIAN_ERROR, ComparedQuantity, ValidationOptions, ValidationReport, Value
from buddysim.validation.curve import curve_data, figure
from buddysim.validation.curve.card_curves import CardCurves, CurveReplay
from buddysim.validation.curve.causes import replay_what_ifs
from buddysim.validation.curve.curve_data import Card, MeasuredCurve
from buddysim.validation.curve.document import HEAD, NOTES
from buddysim.validation.curve.fit import fit_machine
from buddysim.validation.curve.metrics import MEDIAN_TOLERANCE, P90_TOLERANCE, TRANSITION_TOLERANCE, percentile
from buddysim.validation.curve.replays import replay_curve

SUMMARY = "latency and bandwidth curves of gpu-benches on V100, A100, H200 and GH200"
ORDER = 10

NAME = "curves"
PAGE = "hardware"
PAGE_HEAD = HEAD
COLUMNS = ("machine", "card", "source", "benchmark", "x", "measured", "simulated", "error_fraction", "fitted")


def compare(options: ValidationOptions) -> ValidationReport:
    """Replay every curve of the machine, or of all machines.

    Raises
    ------
    BuddysimError
        where there is no such machine, or the measurements can't be read
    """
    presets = Machine.presets()
    if options.machine is not None:
        Machine.load(options.machine)  # reports what is wrong with the name
        presets = [options.machine]
    cards, curves = curve_data.load_cards(), curve_data.load_curves(options.data)
    if options.machine is not None and is_path(options.machine):  # 'machines measure' wrote it next to the table
        machine = Machine.load(options.machine)
        cards[machine.name] = Card(machine.name, options.machine, machine.description, {}, {})
    unknown = sorted({curve.card for curve in curves} - set(cards))
    if unknown:
        raise BuddysimError(
            f"{options.data}: gpu: {shortened(unknown[0])} is not a card: expected one of {', '.join(cards)}"
        )
    measured = [card for card in cards.values() if any(curve.card == card.name for curve in curves)]
    compared = [
        replay_card(card, [curve for curve in curves if curve.card == card.name], options)
        for card in measured
        if card.machine in presets
    ]
    quantities = [row for card in compared for row in compared_quantities(card)]
    quantities += [
        ComparedQuantity(NAME, name, "every curve", "all", note="no curve of such a card")
        for name in presets
        if name not in {card.card.machine for card in compared}
    ]
    return ValidationReport(
        quantities,
        COLUMNS,
        [row for card in compared for row in point_rows(card)],
        (lambda: figure.draw(panels(compared))) if compared else None,
        list(dict.fromkeys(card.machine for card in measured)),
    )


def replay_card(card: Card, curves: Sequence[MeasuredCurve], options: ValidationOptions) -> CardCurves:
    """Fit a card's machine, and replay its curves."""
    machine = card.at_its_clocks()
    fitted = fit_machine(machine, curves)
    replayed = []
    for curve in curves:
        points = replay_curve(fitted.machine, curve)
        if points:
            replayed.append(CurveReplay(curve, fitted.machine, points, fitted.used.get(curve.name, frozenset())))
            options.progress(f"{curve.name}: median error {percentile(replayed[-1].errors, 0.5):.1%}")
    return CardCurves(card, fitted, replayed, list(replay_what_ifs(fitted.machine, curves)))


def page_notes() -> str:
    """Return the causes of errors."""
    return NOTES


def compared_quantities(card: CardCurves) -> Iterator[ComparedQuantity]:
    """Yield the rows of a card in the table of all comparisons."""
    machine = card.card.machine
    for key, value in card.fit.keys.items():
        preset = Machine.load(machine).text(key)
        note = f"{value}; the preset has {preset}"
        yield ComparedQuantity(NAME, machine, card.card.name, f"fitted {key}", note=note)
    for curve in card.curves:
        name = curve.curve.name
        for quantity, fraction, tolerance in (
            ("median error", 0.5, MEDIAN_TOLERANCE),
            ("90th percentile of errors", 0.9, P90_TOLERANCE),
        ):
            yield ComparedQuantity(
                NAME, machine, name, quantity, error=percentile(curve.errors, fraction), tolerance=tolerance,
                error_kind=MEDIAN_ERROR,
            )  # fmt: skip
        if curve.held_out and len(curve.held_out) < len(curve.errors):
            yield ComparedQuantity(
                NAME, machine, name, "median error of points not fitted", error=percentile(curve.held_out, 0.5),
                note=f"{len(curve.held_out)} of {len(curve.errors)} points", error_kind=MEDIAN_ERROR,
            )  # fmt: skip
        for level, measured, simulated in curve.capacity_transitions():
            yield ComparedQuantity(
                NAME, machine, name, f"{level} capacity transition", "KiB", simulated, measured,
                1.0 if simulated is None else simulated / measured - 1, TRANSITION_TOLERANCE,
                "" if simulated else "the replay has no such transition",
            )  # fmt: skip
    for cause in card.causes:
        yield ComparedQuantity(
            NAME, machine, f"what if: {cause.change}", cause.quantity, "", cause.what_if, cause.measured,
            cause.what_if / cause.measured - 1, note=f"without the change {cause.simulated:.5g}",
        )  # fmt: skip


def point_rows(card: CardCurves) -> Iterator[tuple[Value, ...]]:
    """Yield every point, for the CSV file."""
    for curve in card.curves:
        for (x, measured, simulated), error in zip(curve.points, curve.errors, strict=True):
            yield (
                card.card.machine, card.card.name, curve.curve.source, curve.curve.benchmark, x, measured,
                float(f"{simulated:.5g}"), float(f"{error:.3g}"), int(x in curve.fitted),
            )  # fmt: skip


def panels(cards: Sequence[CardCurves]) -> list[figure.Panel]:
    """Return a panel of the figure for each benchmark and card."""
    return [
        figure.Panel(f"{card.card.name}: {curve.curve.benchmark}", curve.curve.source, curve.points)
        for card in cards
        for curve in card.curves
    ]
