"""``python -m buddysim generate``: write the trace of a synthetic workload."""

from __future__ import annotations

import argparse

NAME = "generate"
TASK = "prepare"
ORDER = 220
HELP = """generate a synthetic workload and write its trace file

Without a workload, the command lists the workloads. Without -o, it lists the parameters of the workload."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.completion import completes

    completes(
        parser.add_argument("workload", metavar="WORKLOAD", nargs="?", help="name of the workload"),
        "synthetic workload",
    )
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
    from buddysim.base.output import check_output
    from buddysim.base.settings import parse_settings
    from buddysim.base.terminal import say
    from buddysim.synthetic.workload_classes import REGISTRY

    if args.workload is None:
        if args.settings or args.output is not None:
            raise BuddysimError("generate: no workload named: expected one that 'python -m buddysim generate' lists")
        _list_workloads()
        return 0
    kind = REGISTRY.find(args.workload)
    workload = kind.from_settings(parse_settings(args.settings))
    if args.output is None:
        if args.settings:
            raise BuddysimError(f"generate {args.workload}: no file to write: expected -o FILE")
        _list_parameters(args.workload)
        return 0
    check_output(args.output)
    workload.save(args.output)
    say(f"{args.output}: {args.workload} written")
    return 0


def _list_workloads() -> None:
    from buddysim.report.screen import description_table, print_screen
    from buddysim.synthetic.workload_classes import REGISTRY

    rows = [(name, (kind.__doc__ or "").partition("\n")[0]) for name, kind in REGISTRY.items()]
    print_screen([description_table(("workload", "description"), rows)])


def _list_parameters(name: str) -> None:
    from buddysim.report.screen import description_table, print_screen
    from buddysim.synthetic.workload_classes import REGISTRY

    rows = list(REGISTRY.find(name).parameters())
    print_screen([description_table(("parameter", "default", "description"), rows)])
