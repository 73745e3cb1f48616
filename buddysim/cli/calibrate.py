"""``python -m buddysim calibrate``: times of layers or operators of another GPU, fitted to CSV files of timings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from buddysim.machine.training import TrainingMachine
    from buddysim.report.screen import Part
    from buddysim.training.cost.model import CostModel
    from buddysim.training.cost.operators.rows import MeasuredOperator
    from buddysim.training.cost.timings import MeasuredPass

NAME = "calibrate"
TASK = "machine and models"
ORDER = 440
HELP = "fit times of layers or operators to timings of a GPU and write a calibration file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.completion import completes

    parser.add_argument(
        "timings",
        metavar="FILE.csv",
        nargs="+",
        help="timings: of layers in one file, or of operators in one for each kind "
        "(docs/how-to/calibrate-layer-times.md)",
    )
    completes(
        parser.add_argument("--machine", metavar="NAME|FILE.toml", required=True, help="GPU of the timings"),
        "training machine",
    )
    parser.add_argument(
        "--library", metavar="NAME", default="cudnn7", help="version of the convolution library (default: %(default)s)"
    )
    parser.add_argument(
        "--limited-workspace",
        action="store_true",
        help="the timings are of algorithms with little workspace, not of the fastest",
    )
    parser.add_argument("-o", "--output", metavar="FILE.toml", required=True, help="the calibration file to write")


def run(args: argparse.Namespace) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.base.hints import shortened
    from buddysim.base.output import check_output, write_text
    from buddysim.machine.training import TrainingMachine
    from buddysim.report.screen import print_screen
    from buddysim.training.cost.calibration import check_version, common, version_of
    from buddysim.training.cost.curve import PeakRates
    from buddysim.training.cost.dataset import Dataset
    from buddysim.training.cost.fit import fit_calibration
    from buddysim.training.cost.model import CostModel
    from buddysim.training.cost.timings import read_timings

    inputs = [*args.timings, args.machine]
    check_output(args.output, inputs)
    machine = TrainingMachine.load(args.machine)
    of_operators = _operator_rows(args.timings)
    if of_operators:
        return _calibrate_operators(args, machine, of_operators)
    if version_of(args.library) is None:
        raise BuddysimError(f"--library: {shortened(args.library)}: not a version of cuDNN: expected one like cudnn7")
    check_version(args.library)
    if len(args.timings) > 1:
        raise BuddysimError(f"{args.timings[1]}: timings of layers: expected one file of them")
    (path,) = args.timings
    timings = read_timings(path)
    if not any(timing.has_products for timing in timings):
        raise BuddysimError(f"{path}: no timing of a conv or fc layer: expected one, to fit efficiencies to")

    def fitted(timings_to_fit: Sequence[MeasuredPass]) -> CostModel:
        data = Dataset(machine.name, args.library, PeakRates.of(machine), tuple(timings_to_fit))
        source = (f"{len(timings_to_fit)} timings of {Path(path).name}, fitted by buddysim calibrate",)
        calibration = fit_calibration(data, common(), source, args.limited_workspace)
        return CostModel.load(machine, args.library, calibration)

    model = fitted(timings)
    assert model.calibration is not None
    write_text(args.output, model.calibration.to_toml(), inputs)
    use = f"train ... --machine {args.machine} --calibration {args.output}"
    print_screen([*_report(model, fitted, timings), "", f"written: {args.output}; use it by: {use}"])
    return 0


def _operator_rows(paths: Sequence[str]) -> dict[str, list[MeasuredOperator]]:
    """Return rows of operators by kind of file; empty where the first file has none."""
    from buddysim.base.errors import BuddysimError
    from buddysim.base.textfile import read_text
    from buddysim.training.cost.operators.rows import USER_FILES, parse_rows, user_file
    from buddysim.training.cost.timings import LARGEST_FILE

    rows: dict[str, list[MeasuredOperator]] = {}
    for path in paths:
        text = read_text(path, "file of timings", LARGEST_FILE)
        kind = user_file(text, path)
        if kind is None and not rows:
            return {}
        if kind is None or kind in rows:
            expected = ", ".join(name for name in USER_FILES if name not in rows)
            raise BuddysimError(f"{path}: {kind or 'no rows of operators'}: expected one file of each of {expected}")
        rows[kind] = parse_rows(text, kind, path)
    return rows


def _calibrate_operators(
    args: argparse.Namespace, machine: TrainingMachine, rows: dict[str, list[MeasuredOperator]]
) -> int:
    """Fit constants of operators, write them, and print their errors on rows that a second fit hasn't seen."""
    from buddysim.base.output import write_text
    from buddysim.report.screen import Column, ScreenTable, print_screen
    from buddysim.training.calibration.user import check_user_rows, errors_of_user, fit_user
    from buddysim.training.cost.operators.constants import shared_constants
    from buddysim.training.cost.operators.figures import GpuFigures

    check_user_rows(rows)
    gpu = GpuFigures.of(machine)
    constants = fit_user(gpu, rows, shared_constants())
    write_text(args.output, constants.to_toml(), [*args.timings, args.machine])
    lines = [
        (one.file, one.name, str(one.rows), f"{one.seen:.1%}", "-" if one.held_out is None else f"{one.held_out:.1%}")
        for one in errors_of_user(gpu, rows, constants, shared_constants())
    ]
    columns = [Column("kind", left=True), Column("name", left=True), *map(Column, ("rows", "median error", "held out"))]
    use = f"train ... --machine {args.machine} --calibration {args.output}"
    print_screen([ScreenTable(columns, lines), "", f"written: {args.output}; use it by: {use}"])
    return 0


def _report(
    model: CostModel, fitted: Callable[[Sequence[MeasuredPass]], CostModel], timings: Sequence[MeasuredPass]
) -> Iterator[Part]:
    """The efficiencies found, and the errors on the timings and on held-out shapes, which a second fit didn't see."""
    from buddysim.report.screen import Column, ScreenTable
    from buddysim.training.cost.evaluate import errors, median_error
    from buddysim.training.cost.split import split
    from buddysim.training.cost.work import PASSES

    calibration = model.calibration
    assert calibration is not None
    yield f"{len(timings)} timings of {len({timing.shape for timing in timings})} shapes on {model.machine.name}"
    yield ""
    groups = calibration.efficiency[PASSES[0]]
    rows = [
        (group, *(f"{calibration.efficiency[p][group]:.3f} ({calibration.measured[p][group]})" for p in PASSES))
        for group in groups
    ]
    yield ScreenTable([Column("fraction of the peak rate (shapes)", left=True), *map(Column, PASSES)], rows)
    yield ""
    yield f"median error on these timings: {median_error(errors(model, timings)):.1%}"
    inside, outside = split(timings)
    if outside and any(timing.has_products for timing in inside):
        off = median_error(errors(fitted(inside), outside))
        yield f"median error on {len(outside)} timings of held-out shapes, fitted without them: {off:.1%}"
    else:
        yield "too few shapes to hold some out: the error on other shapes is unknown"
