"""``python -m buddysim traces``: the traces of the repository, their paths, and how to get missing ones."""

from __future__ import annotations

import argparse
from dataclasses import asdict

NAME = "traces"
TASK = "machine and models"
ORDER = 460
HELP = """list the traces of the repository and print their paths

With a name, the command shows the source and licence of that trace and the command that made it. --path prints the
path alone:

  python -m buddysim run "$(python -m buddysim traces kv-cache --path)\""""

GET = (
    "Missing traces are in the folder traces/ of buddysim's repository; a command in the folder of a clone sees them "
    "all. The command that 'traces NAME' shows makes a trace from its source."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.completion import completes
    from buddysim.cli.json_output import add_json_argument

    completes(
        parser.add_argument("name", metavar="NAME", nargs="?", help="name of a trace: kv-cache"),
        "trace",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--path", action="store_true", help="print the path of the trace file alone")
    add_json_argument(form, "the list")


def run(args: argparse.Namespace) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.base.output import check_outputs
    from buddysim.cli.json_output import is_on_stdout, json_file, write_plain_json
    from buddysim.report.quantities import format_bytes
    from buddysim.report.screen import Column, ScreenTable, description_table, print_screen
    from buddysim.trace.shipped import shipped_trace, shipped_traces

    traces = shipped_traces() if args.name is None else [shipped_trace(args.name)]
    check_outputs([json_file(args)])
    write_plain_json(args, [asdict(trace) for trace in traces])
    if is_on_stdout(args):
        return 0
    if args.path:
        if args.name is None:
            raise BuddysimError("traces: --path: expected the name of a trace too")
        if traces[0].path is None:
            raise BuddysimError(f"traces: {args.name}: is not here; {GET}")
        print(traces[0].path)
        return 0
    if args.name is not None:
        facts = [(key, str(value) if value is not None else "not here") for key, value in asdict(traces[0]).items()]
        print_screen([description_table((), facts)])
        return 0
    columns = [Column("trace", left=True), Column("size"), Column("file", left=True)]
    rows = [(trace.name, format_bytes(trace.bytes), str(trace.path or "not here"), trace.about) for trace in traces]
    print_screen([ScreenTable([*columns, Column("description", left=True, text=True)], rows), "", GET])
    return 0
