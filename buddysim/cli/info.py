"""``python -m buddysim info``: provenance, allocations, kernels, events and snapshots of a trace file."""

from __future__ import annotations

import argparse

NAME = "info"
TASK = "prepare"
ORDER = 260
HELP = "show the allocations, kernels and snapshots of a trace file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.completion import completes
    from buddysim.cli.json_output import add_json_argument

    completes(parser.add_argument("file", metavar="FILE", help="the trace file"), "file")
    parser.add_argument("--assumptions", action="store_true", help="list every assumption of the trace, numbered")
    add_json_argument(parser, "all of it, every list complete,")


def run(args: argparse.Namespace) -> int:
    from buddysim.base.output import check_outputs
    from buddysim.cli.json_output import is_on_stdout, json_file, write_plain_json
    from buddysim.report.screen import print_screen
    from buddysim.report.trace_content_screen import content_parts
    from buddysim.trace import open_trace
    from buddysim.trace.describe import describe

    check_outputs([json_file(args)], [args.file])
    with open_trace(args.file) as trace:
        content = describe(trace)
    write_plain_json(args, content)
    if not is_on_stdout(args):
        print_screen(content_parts(content, args.assumptions))
    return 0
