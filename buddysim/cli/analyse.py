"""``python -m buddysim analyse``: what a trace's memory holds, and what Buddy Compression makes of it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from buddysim.analyses import AnalysisOptions, AnalysisResult

NAME = "analyse"
TASK = "look"
ORDER = 350
HELP = """analyse the data values of traces and print one table per analysis

Each analysis is a table on the screen; -o writes all of them as CSV, a file each. 'list analysis' has a line about
each. Those that replay (metadata, targets, accesses) do so under Buddy Compression on --machine."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.analyses import REGISTRY, AnalysisOptions
    from buddysim.cli.completion import completes

    default = AnalysisOptions()
    completes(parser.add_argument("files", metavar="FILE", nargs="+", help="trace files with values"), "file")
    parser.add_argument(
        "--only",
        metavar="NAME[,NAME...]",
        help=f"analyses: {', '.join(REGISTRY.names())} (default: all that the trace has the values for)",
    )
    parser.add_argument(
        "--compressor",
        metavar="NAME[,NAME...]",
        default=",".join(default.compressors),
        help="compressor of the entries; an analysis that compares takes several, others the first "
        "(default: %(default)s)",
    )
    completes(
        parser.add_argument(
            "--machine", metavar="NAME", default=default.machine, help="machine of replays (default: %(default)s)"
        ),
        "machine",
    )
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="FRACTION",
        default=default.threshold,
        help="Buddy Threshold (default: %(default)s)",
    )
    parser.add_argument(
        "--profile-from",
        metavar="OTHER.bin",
        help="trace of another input of the same program, on which targets are chosen (default: each trace itself)",
    )
    parser.add_argument("--partial", action="store_true", help="accept trace files whose end is missing")
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", help="write each analysis as FOLDER/TRACE-NAME.csv; the folder is made"
    )
    parser.add_argument("--json", metavar="FILE", help="write all of them; -: to standard output, no screen")


def run(args: argparse.Namespace) -> int:
    from pathlib import Path

    from buddysim.analyses import REGISTRY, AnalysisOptions, DoesNotApply, analyse
    from buddysim.base.csvfile import csv_text
    from buddysim.base.output import check_outputs, write_text
    from buddysim.base.terminal import say
    from buddysim.cli.json_output import is_on_stdout, json_file
    from buddysim.report.analysis_screen import analysis_parts
    from buddysim.report.screen import print_screen
    from buddysim.trace import open_trace

    names = _names(args.only) if args.only is not None else list(REGISTRY.names())
    for name in names:
        REGISTRY.find(name)
    options = AnalysisOptions(
        tuple(_names(args.compressor)),
        args.machine,
        args.threshold,
        profile_from=args.profile_from,
        partial=args.partial,
    )
    targets = _targets(args.files, names, args.output)
    if args.output is not None:
        Path(args.output).mkdir(parents=True, exist_ok=True)
    check_outputs([*targets.values(), json_file(args)], args.files)
    results: dict[str, dict[str, AnalysisResult]] = {}
    for file in args.files:
        results[file] = {}
        with open_trace(file) as trace:
            for name in names:
                try:
                    one = results[file][name] = analyse(trace, name, options)
                except DoesNotApply as missing:
                    if args.only is not None:
                        raise
                    say(f"analyse: left out: {name}: {missing}")
                    continue
                if not is_on_stdout(args):
                    print_screen([f"{Path(file).name}, {name}", *analysis_parts(one), ""])
    written = {target: results[file][name] for (file, name), target in targets.items() if name in results[file]}
    for target, one in written.items():
        write_text(target, csv_text([one.columns, *one.rows]))
    _write_json(results, options, args.json)
    for target in written:
        print(f"written: {target}")
    return 0


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _targets(files: Sequence[str], names: Sequence[str], folder: str | None) -> dict[tuple[str, str], str]:
    """The CSV file of each trace and analysis; traces of one name have numbers."""
    from pathlib import Path

    if folder is None:
        return {}
    targets: dict[tuple[str, str], str] = {}
    for file in files:
        for name in names:
            stem, number = Path(file).stem, 1
            while (target := str(Path(folder) / f"{stem}-{name}.csv")) in targets.values():
                number += 1
                stem = f"{Path(file).stem}-{number}"
            targets[file, name] = target
    return targets


def _write_json(results: dict[str, dict[str, AnalysisResult]], options: AnalysisOptions, target: str | None) -> None:
    from dataclasses import asdict

    from buddysim.base.jsonfile import print_utf8, to_json, write_json

    if target is None:
        return
    content = {
        file: {
            "options": asdict(options),
            **{name: {"title": one.title, "notes": list(one.notes), "rows": one.records()} for name, one in of.items()},
        }
        for file, of in results.items()
    }
    if target == "-":
        print_utf8(to_json(content))
    else:
        write_json(target, content)
