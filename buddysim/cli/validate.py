"""``python -m buddysim validate``: compares the simulator with measurements of real GPUs and with other simulators."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buddysim.validation import ValidationReport

NAME = "validate"
TASK = "machine and models"
ORDER = 450
HELP = """compare buddysim with GPUs and simulators and print errors

Each comparison is a table on the screen: quantities with a tolerance, their errors and whether they pass. -o writes its
page, its rows of the table of all comparisons, every point as CSV, and figures. Rows of other
comparisons stay."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.completion import completes
    from buddysim.validation import REGISTRY

    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        choices=REGISTRY.names(),
        help=f"the comparison: {', '.join(REGISTRY.names())} (default: all)",
    )
    completes(
        parser.add_argument(
            "--machine",
            metavar="NAME",
            help="the preset to compare, or for curves a machine file (default: all presets)",
        ),
        "machine",
    )
    completes(
        parser.add_argument("--data", metavar="FILE", help="measured curves that replace the bundled ones, as CSV"),
        "file",
    )
    completes(
        parser.add_argument(
            "--captures",
            metavar="FOLDER",
            help="captured programs to replay, PROGRAM.bin each, or a CSV of earlier replays (kernels)",
        ),
        "file",
    )
    parser.add_argument("--all", action="store_true", help="show quantities without a tolerance, too")
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", help="write pages, validation.csv and more; the folder is made"
    )


def run(args: argparse.Namespace) -> int:
    from dataclasses import replace
    from pathlib import Path

    from buddysim.base import validation_table
    from buddysim.base.csvfile import csv_text
    from buddysim.base.output import check_outputs, write_text
    from buddysim.plotting.save import save_figure
    from buddysim.report.progress import progress_line
    from buddysim.report.screen import print_screen
    from buddysim.report.validation_page import comparison_page
    from buddysim.report.validation_screen import validation_parts
    from buddysim.validation import REGISTRY, ValidationOptions, file_stem, page_of, reference_of

    names = [args.name] if args.name else list(REGISTRY.names())
    data, captures = (None if path is None else Path(path) for path in (args.data, args.captures))
    outputs = []
    pages: dict[str, list[str]] = {}
    for name in names:
        pages.setdefault(page_of(REGISTRY.find(name)), []).append(name)
    if args.output is not None:
        folder = Path(args.output)
        folder.mkdir(parents=True, exist_ok=True)
        stems = [file_stem(REGISTRY.find(name)) for name in names]
        points = [folder / f"{stem}.{ending}" for stem in stems for ending in ("csv", "png")]
        outputs = [folder / validation_table.FILE, *(folder / f"{page}.md" for page in pages), *points]
        check_outputs(outputs, [data, captures])
    reports: dict[str, ValidationReport] = {}
    for name in names:
        comparison = REGISTRY.find(name)
        with progress_line() as progress:
            report = comparison.compare(ValidationOptions(args.machine, data, captures, progress))
        reports[name] = report
        if args.machine is not None and not report.has_results:
            continue
        reference = reference_of(name)
        if data is not None:
            reference = replace(reference, description=f"measured values of {data}")
        summary = f"{name}: {comparison.SUMMARY}"
        print_screen([*validation_parts(summary, report.quantities, reference, show_all=args.all), ""])
    if args.machine is not None:
        check_machine(args.machine, reports)
    if outputs:
        table = outputs[0]
        for page, parts in pages.items():
            path = folder / f"{page}.md"
            rows = {name: [quantity.row for quantity in reports[name].quantities] for name in parts}
            write_text(table, validation_table.merged(table, page, rows))
            write_text(path, comparison_page(table, page))
        for report, table_of_points, figure in zip(reports.values(), points[::2], points[1::2], strict=True):
            write_text(table_of_points, csv_text([report.columns, *report.rows]))
            if report.figure is not None:
                save_figure(report.figure(), figure)
    for output in outputs:
        if output.exists():
            print(f"written: {output}")
    return 0


def check_machine(machine: str, reports: Mapping[str, ValidationReport]) -> None:
    """Check that a machine has reference values in at least one comparison.

    Raises
    ------
    BuddysimError
        where it has none; the message lists the machines that have some
    """
    from buddysim.base.errors import BuddysimError

    if any(report.has_results for report in reports.values()):
        return
    expected = ", ".join(dict.fromkeys(name for report in reports.values() for name in report.machines))
    subject = f"{next(iter(reports))} of this machine" if len(reports) == 1 else "this machine"
    raise BuddysimError(f"--machine {machine}: no reference values for {subject}: expected one of {expected}")
