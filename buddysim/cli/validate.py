"""``python -m buddysim validate``: the simulator held against measurements of real GPUs and other simulators."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from buddysim.validation import ValidationReport

NAME = "validate"
HELP = """hold the simulator against measurements of real GPUs and other simulators

Each comparison is a table on the screen: quantities with their goals and verdicts. -o writes the page and the one table
of all comparisons (those that don't run now stay as they are there), every point as CSV, and figures."""
PAGE = "validation-silicon"
LARGEST_PAGE = 2**22


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.completion import completes
    from buddysim.validation import REGISTRY

    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        choices=REGISTRY.names(),
        help=f"{', '.join(REGISTRY.names())} (default: all)",
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
        parser.add_argument("--data", metavar="FILE", help="measured curves in place of those that come along, as CSV"),
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
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", help=f"write {PAGE}.md, validation.csv and more; the folder is made"
    )


def run(args: argparse.Namespace) -> int:
    from pathlib import Path

    from buddysim.base import validation_table
    from buddysim.base.csvfile import csv_text
    from buddysim.base.output import check_outputs, write_text
    from buddysim.base.terminal import say
    from buddysim.plotting.save import save_figure
    from buddysim.report.screen import print_screen
    from buddysim.report.validation_screen import validation_parts
    from buddysim.validation import REGISTRY, ValidationOptions

    names = [args.name] if args.name else list(REGISTRY.names())
    data, captures = (None if given is None else Path(given) for given in (args.data, args.captures))
    targets = []
    if args.output is not None:
        folder = Path(args.output)
        folder.mkdir(parents=True, exist_ok=True)
        endings = [".md", *(f"-{name}.{kind}" for name in names for kind in ("csv", "png"))]
        targets = [folder / validation_table.FILE, *(folder / f"{PAGE}{ending}" for ending in endings)]
        check_outputs(targets, [data, captures])
    found: dict[str, ValidationReport] = {}
    for name in names:
        found[name] = REGISTRY.find(name).compare(ValidationOptions(args.machine, data, captures, say))
        print_screen([f"{name}:", *validation_parts(found[name].quantities), ""])
    if targets:
        table, page = targets[:2]
        rows = {name: [quantity.row for quantity in one.quantities] for name, one in found.items()}
        write_text(table, validation_table.merged(table, PAGE, rows))
        write_text(page, merged_page(page if page.exists() else None, found))
        for (_, one), points, picture in zip(found.items(), targets[2::2], targets[3::2], strict=True):
            write_text(points, csv_text([one.columns, *one.rows]))
            if one.figure is not None:
                save_figure(one.figure(), picture)
    for target in targets:
        if target.exists():
            print(f"written: {target}")
    return 0


def merged_page(existing: Path | None, found: Mapping[str, ValidationReport]) -> str:
    """The page with these comparisons, and with those that it had and that did not run now."""
    from buddysim.base.textfile import read_text
    from buddysim.report.validation_screen import page, parts_of
    from buddysim.validation import REGISTRY

    had = {} if existing is None else parts_of(read_text(existing, "page of comparisons", LARGEST_PAGE))
    parts = had | {name: "\n".join(one.document) for name, one in found.items()}
    return page({name: parts[name] for name in REGISTRY.names() if name in parts})
