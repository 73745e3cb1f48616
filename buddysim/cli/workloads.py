"""``python -m buddysim workloads``: the HPC programs and the networks of the study."""

from __future__ import annotations

import argparse
from pathlib import Path

from buddysim.cli import CommandParser

NAME = "workloads"
TASK = "prepare"
ORDER = 230
HELP = """list the study's workloads; make, compare or tabulate their traces

Each program is a real solver, run as an OpenCL program on the CPU, verified, and captured at one of its steps. Each
network is trained in PyTorch; the kernels of one of its iterations are modelled."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True, parser_class=CommandParser
    )
    listing = actions.add_parser("list", help="list the workloads", allow_abbrev=False)
    listing.set_defaults(act=_list)
    making = actions.add_parser("make", help="make the traces of workloads", allow_abbrev=False)
    _add_make_arguments(making)
    making.set_defaults(act=_make)

    comparing = actions.add_parser(
        "diff", help="compare traces at the scale reference with the original programs", allow_abbrev=False
    )
    comparing.add_argument("files", metavar="FILE", nargs="+", help="a trace made with --scale reference")
    comparing.add_argument("--all", action="store_true", help="list every allocation, not only those that differ")
    comparing.set_defaults(act=_compare)
    drawing = actions.add_parser("table", help="compare traces with what the paper reports", allow_abbrev=False)
    drawing.add_argument("files", metavar="FILE", nargs="+", help="a trace made by 'workloads make', of any scale")
    drawing.add_argument("-o", "--output", metavar="FILE.md", help="document to write (default: standard output)")
    drawing.set_defaults(act=_table)


def _add_make_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.workloads.workload_registry import INPUTS, SCALES

    parser.add_argument("names", metavar="NAME", nargs="+", help="a workload (see 'workloads list'), or all")
    parser.add_argument(
        "--scale",
        choices=SCALES,
        default="medium",
        help="scale; small: seconds, for tests; medium: for figures; paper: its footprints; reference: as the "
        "program that it is compared with",
    )
    parser.add_argument(
        "--input",
        choices=(*INPUTS, "both"),
        default="profile",
        help="problem, of two that differ in size or seed; profile: targets are chosen on it; replay: it is replayed",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the trace file; of several, the folder of NAME-SCALE-INPUT.bin, made if missing (default: this one)",
    )
    parser.add_argument(
        "--jobs", type=_positive, default=1, metavar="N", help="number of workloads to make at once (default: 1)"
    )
    parser.add_argument(
        "--contents-every",
        type=_every,
        default=0,
        metavar="N",
        help="period of the 8 KiB pages whose bytes are kept; 0: none, all sizes are kept; of 'all' networks keep none "
        "(default: 0)",
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r}, expected 1 to 1024")
    return int(text)


def _every(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}, expected 0 or more")
    return int(text)


def run(args: argparse.Namespace) -> int:
    return int(args.act(args))


def _list(args: argparse.Namespace) -> int:
    from buddysim.report.screen import description_table, print_screen
    from buddysim.workloads.workload_registry import REGISTRY

    rows = [(name, f"{workload.SUMMARY} ({', '.join(workload.PROBLEMS)})") for name, workload in REGISTRY.items()]
    print_screen([description_table(("workload", "description (problems)"), rows)])
    return 0


def _make(args: argparse.Namespace) -> int:
    from buddysim.report.screen import print_screen
    from buddysim.workloads.batch import Order, make_all
    from buddysim.workloads.workload_registry import INPUTS, REGISTRY, is_network, problem_of

    names = REGISTRY.names() if args.names == ["all"] else tuple(dict.fromkeys(args.names))
    inputs = INPUTS if args.input == "both" else (args.input,)
    for name in names:
        problem_of(name, args.scale, inputs[0])
    if len(names) * len(inputs) == 1:
        path = Path(args.output or f"{names[0]}-{args.scale}-{inputs[0]}.bin")
        orders = [Order(names[0], args.scale, inputs[0], path, args.contents_every)]
    else:
        folder = Path(args.output or ".")
        folder.mkdir(parents=True, exist_ok=True)
        orders = [
            Order(name, args.scale, which, folder / f"{name}-{args.scale}-{which}.bin", contents)
            for name in names
            for contents in [0 if args.names == ["all"] and is_network(REGISTRY.find(name)) else args.contents_every]
            for which in inputs
        ]
    for made in make_all(orders, args.jobs):
        state = "already present" if made.is_present else "made"
        print_screen([f"{made.path}: {state}, verified: {'; '.join(made.verification)}"])
    return 0


def _compare(args: argparse.Namespace) -> int:
    from buddysim.workloads.workload_comparison import MAX_POINTS, POINTS, compare

    for file in args.files:
        comparison = compare(file)
        alike = [row for row in comparison.rows if row.alike]
        print(f"{comparison.workload} compared with {comparison.program}")
        for when in POINTS:
            program, workload = comparison.ratios(when)
            error = f"{100 * (workload / program - 1):+.1f} %{'' if comparison.alike(when) else ' *'}"
            print(f"  {when:6} ratio {program:.3f} (program), {workload:.3f} (workload): {error}")
        print(f"  {len(alike)} of {len(comparison.rows)} rows have every size class within {MAX_POINTS:g} points")
        for row in (
            comparison.rows if args.all else sorted(set(comparison.rows) - set(alike), key=lambda row: -row.points)
        ):
            program, workload = row.ratios
            print(f"    {row.name:24} {row.when:6} {program:8.3f} {workload:8.3f}  {row.points:5.1f} points")
    return 0


def _table(args: argparse.Namespace) -> int:
    from buddysim.base.output import check_output, write_text
    from buddysim.workloads.workload_table import table

    if args.output is not None:
        check_output(args.output, args.files)
    text = table(args.files)
    if args.output is None:
        print(text)
    else:
        write_text(args.output, text + "\n", args.files)
    return 0
