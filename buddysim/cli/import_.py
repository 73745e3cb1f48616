"""``python -m buddysim import``: traces of other tools as trace files."""

from __future__ import annotations

import argparse
import shlex
import sys

NAME = "import"
TASK = "prepare"
ORDER = 210
HELP = "convert traces of another tool and write a trace file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.importers import REGISTRY

    formats = parser.add_subparsers(title="formats", dest="format", metavar="FORMAT", required=True)
    for name, importer in REGISTRY.items():
        subparser = formats.add_parser(name, help=importer.SUMMARY, description=importer.SUMMARY, allow_abbrev=False)
        importer.add_arguments(subparser)
        subparser.add_argument("-o", "--output", required=True, metavar="OUT.bin", help="the trace file to write")


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from buddysim.base.output import check_output, is_standard_output
    from buddysim.base.returned import returned
    from buddysim.base.terminal import one_line, warn
    from buddysim.importers import REGISTRY, Importer, ImportResult
    from buddysim.report.screen import print_screen

    importer: Importer = REGISTRY.find(args.format)
    check_output(args.output)
    command = shlex.join(["buddysim", *sys.argv[1:]])
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        with console.status("") as status:
            imported = importer.import_trace(args, command, lambda what: status.update(one_line(what)))
    else:
        imported = importer.import_trace(args, command, lambda what: None)
    imported = returned(imported, ImportResult, f"importer {args.format}: import_trace", importer.import_trace)
    for warning in imported.warnings:
        warn(warning)
    if is_standard_output(args.output):
        print(imported.summary, file=sys.stderr)
    else:
        print_screen([imported.summary])
    return 0
