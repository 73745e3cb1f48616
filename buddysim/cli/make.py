"""``python -m buddysim make``: write the trace of a synthetic workload."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

NAME = "make"
HELP = """write the trace of a synthetic workload

Without a workload: lists them. With a workload but no file: lists its parameters."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workload", metavar="WORKLOAD", nargs="?", help="name of the workload")
    parser.add_argument("-o", "--output", metavar="FILE", help="the trace file to write, replaced if it exists")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="a parameter of the workload, for example footprint=64MiB; may be repeated",
    )


def run(args: argparse.Namespace) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.base.settings import parse_settings
    from buddysim.synthetic.registry import REGISTRY

    if args.workload is None:
        if args.settings or args.output:
            raise BuddysimError("make: no workload named: 'python -m buddysim make' lists them")
        _list_workloads()
        return 0
    kind = REGISTRY.find(args.workload)
    workload = kind.from_settings(parse_settings(args.settings))
    if args.output is None:
        if args.settings:
            raise BuddysimError(f"make {args.workload}: no file to write: expected -o FILE")
        _list_parameters(args.workload)
        return 0
    workload.save(args.output)
    print(f"{args.output}: {args.workload} written", file=sys.stderr)
    return 0


def _list_workloads() -> None:
    from buddysim.synthetic.registry import REGISTRY

    rows = [(name, (kind.__doc__ or "").partition("\n")[0]) for name, kind in REGISTRY.items()]
    _print_rows(["workload", "what it is"], rows)


def _list_parameters(name: str) -> None:
    from buddysim.synthetic.registry import REGISTRY

    _print_rows(["parameter", "default", "what it is"], list(REGISTRY.find(name).parameters()))


def _print_rows(headings: list[str], rows: Sequence[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, emoji=False, width=160)
    console.print(table)
