"""``python -m buddysim profile``: target ratios of a trace's allocations, and what they are chosen from."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from buddysim.base.errors import BuddysimError
from buddysim.buddy import AllocationProfile, Distribution, Profile, ProfileOptions, profile_with
from buddysim.buddy.options import AGGREGATES, POLICIES
from buddysim.buddy.profile import STATES
from buddysim.compress.registry import entry_algorithms
from buddysim.machine.units import format_size
from buddysim.trace import open_trace

NAME = "profile"
HELP = """choose a target ratio for each allocation

Compresses every entry of every snapshot (or takes the sizes that the trace has) and counts the sectors that entries
need. Of each allocation, a share of entries up to the Buddy Threshold may overflow its ratio."""

_WIDTH_WHEN_PIPED = 160
_ASSUMED = " *"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the trace file")
    parser.add_argument(
        "--threshold",
        type=float,
        default=ProfileOptions.threshold,
        metavar="SHARE",
        help="Buddy Threshold: share of an allocation's entries that may overflow (default: %(default)s)",
    )
    parser.add_argument(
        "--aggregate",
        choices=AGGREGATES,
        default=ProfileOptions.aggregate,
        help="the threshold holds in every snapshot (worst, the default) or on average (mean)",
    )
    parser.add_argument(
        "--policy",
        choices=POLICIES,
        default=ProfileOptions.policy,
        help="final (the default): a ratio per allocation, 16x for mostly-zero ones; per-allocation: without 16x; "
        "naive: one ratio for all",
    )
    parser.add_argument(
        "--mostly-zero",
        type=float,
        default=ProfileOptions.mostly_zero,
        metavar="SHARE",
        help="least share of entries that fit 8 B, in every snapshot, for 16x (default: %(default)s)",
    )
    parser.add_argument(
        "--compressor",
        default=ProfileOptions.algorithm,
        metavar="NAME",
        help=f"whose sizes entries have: {', '.join(entry_algorithms())} (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=ProfileOptions.seed, metavar="N", help="of sizes that the trace doesn't know"
    )
    parser.add_argument(
        "--distribution",
        default=ProfileOptions.distribution,
        metavar="NAME",
        help=f"of those sizes: {', '.join(Distribution.names())} (default: %(default)s)",
    )
    parser.add_argument(
        "--profile-until",
        type=int,
        default=ProfileOptions.until,
        metavar="LAUNCH",
        help="only snapshots taken when at most that many launches had ended (default: all)",
    )
    parser.add_argument("-o", "--output", metavar="FILE.toml", help="write the targets to a file for run --targets")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    with open_trace(args.file) as trace:
        if args.output is not None and Path(args.output).resolve() == Path(args.file).resolve():
            raise BuddysimError(f"{args.output}: is the trace itself: expected another file for the targets")
        options = ProfileOptions(
            args.threshold,
            args.aggregate,
            args.policy,
            args.compressor,
            args.seed,
            args.distribution,
            args.mostly_zero,
            until=args.profile_until,
        )
        found = profile_with(trace, options)
        if args.output is not None:
            found.targets.save(args.output, f"made from the trace {trace.fingerprint}\n{_how(found)}")
    if args.json:
        print(json.dumps(found.to_dict(), indent=2))
        return 0
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, emoji=False, width=_WIDTH_WHEN_PIPED)
    _show(found, console)
    if args.output is not None:
        console.print(f"targets written to {args.output}")
    return 0


def _show(found: Profile, console: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("allocation", overflow="fold")
    headings = ("bytes", "snapshots", *(f"{state} sect." if state.isdigit() else state for state in STATES))
    for heading in (*headings, "target", "buddy accesses", "worst"):
        table.add_column(heading, no_wrap=True, justify="right")
    for row in found.rows:
        table.add_row(*_cells(found, row))
    console.print(table)
    console.print()
    free = found.free_placement_ratio
    console.print(
        f"ratio {found.ratio:.2f} (entries placed freely in 8 sizes: {free:.2f}), "
        f"static buddy-access share {found.buddy_access_share:.2%} ({_how(found)})"
    )
    if any(row.drawn for row in found.rows):
        drawn = Distribution.load(found.options.distribution)
        console.print(
            f"* the trace has no values: sizes drawn from {drawn.name}, seed {found.options.seed} ({drawn.source})"
        )
    unseen = [row.name for row in found.rows if row.unseen]
    if unseen:
        names = ", ".join(map(_printable, unseen))
        console.print(f"without sizes up to launch {found.options.until}, kept whole: {names}")
    if found.host:
        console.print(f"in host memory, without a target: {', '.join(map(_printable, found.host))}")


def _cells(found: Profile, row: AllocationProfile) -> list[str]:
    shares = [f"{share:.1%}" if share else "-" for share in row.histogram]
    overflow, worst = float(found.overflow(row)), float(found.overflow(row, "worst"))
    return [
        _printable(row.name) + (_ASSUMED if row.drawn else ""),
        format_size(row.bytes),
        str(len(row.snapshots)) if row.snapshots else "none",
        *shares,
        row.target.name,
        f"{overflow:.2%}",
        f"{worst:.2%}",
    ]


def _how(found: Profile) -> str:
    options = found.options
    decides = "the worst snapshot decides" if options.aggregate == "worst" else "the mean over the snapshots decides"
    sizes = f", sizes by {options.algorithm}" if options.algorithm != ProfileOptions.algorithm else ""
    until = f", snapshots up to launch {options.until}" if options.until is not None else ""
    return f"policy {options.policy}, threshold {options.threshold:g}, {decides}{sizes}{until}"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
