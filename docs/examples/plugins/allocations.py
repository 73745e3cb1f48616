"""A command of your own: ``allocations TRACE.bin`` prints what a trace allocates, the largest first."""

from __future__ import annotations

import argparse

NAME = "allocations"
TASK = "prepare"
HELP = "print the allocations of a trace, the largest first"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the trace file")
    parser.add_argument("--most", metavar="N", type=int, default=10, help="lines to print (default: 10)")


def run(args: argparse.Namespace) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.trace import open_trace

    if args.most < 1:
        raise BuddysimError(f"--most {args.most}: expected 1 or more")
    with open_trace(args.file) as trace:
        largest = sorted(trace.allocations, key=lambda allocation: (-allocation.bytes, allocation.index))
        for allocation in largest[: args.most]:
            print(f"{allocation.bytes:>14,} B  {allocation.space:6}  {allocation.name}")
    return 0
