"""``python -m buddysim validate``: the simulator held against measurements of real GPUs and other simulators."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buddysim.validation import Comparison

NAME = "validate"
HELP = """hold the simulator against measurements of real GPUs

Each comparison is a table on the screen: quantities with their goals and verdicts. -o writes the page, the one table of
all comparisons that ran, every point as CSV, and figures."""
PAGE = "validation-silicon"


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
    completes(parser.add_argument("--machine", metavar="NAME", help="the preset to compare (default: all)"), "machine")
    completes(
        parser.add_argument("--data", metavar="FILE", help="measured curves in place of those that come along, as CSV"),
        "file",
    )
    parser.add_argument("-o", "--output", metavar="FOLDER", help=f"write {PAGE}.md, .csv and more; the folder is made")


def run(args: argparse.Namespace) -> int:
    from pathlib import Path

    from buddysim.base.csvfile import csv_text
    from buddysim.base.output import check_outputs, write_text
    from buddysim.base.terminal import say
    from buddysim.figures.drawing.save import save
    from buddysim.report.screen import print_screen
    from buddysim.report.validation import page, validation_parts
    from buddysim.validation import REGISTRY, Judged, Options

    names = [args.name] if args.name else list(REGISTRY.names())
    data = None if args.data is None else Path(args.data)
    targets = []
    if args.output is not None:
        folder = Path(args.output)
        folder.mkdir(parents=True, exist_ok=True)
        endings = [".md", ".csv", *(f"-{name}.{kind}" for name in names for kind in ("csv", "png"))]
        targets = [folder / f"{PAGE}{ending}" for ending in endings]
        check_outputs(targets, [data])
    found: dict[str, Comparison] = {}
    for name in names:
        found[name] = REGISTRY.find(name).compare(Options(args.machine, data, say))
        print_screen([f"{name}:", *validation_parts(found[name].judged), ""])
    if targets:
        write_text(targets[0], page(found))
        judged = [row for one in found.values() for row in one.judged]
        write_text(targets[1], csv_text([Judged.COLUMNS, *(row.row for row in judged)]))
        for (_, one), points, picture in zip(found.items(), targets[2::2], targets[3::2], strict=True):
            write_text(points, csv_text([one.columns, *one.rows]))
            if one.picture is not None:
                save(one.picture(), picture)
    for target in targets:
        if target.exists():
            print(f"written: {target}")
    return 0
