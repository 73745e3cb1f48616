"""``python -m buddysim profile``: target ratios of a trace's allocations, and what they are chosen from."""

from __future__ import annotations

import argparse
import json

from buddysim.base.output import check_outputs
from buddysim.buddy import AllocationProfile, Distribution, Profile, ProfileOptions, profile_with
from buddysim.buddy.drawn import DRAWN_SEEDS, ratio_spread
from buddysim.buddy.options import AGGREGATES, POLICIES
from buddysim.buddy.profile import STATES
from buddysim.compress.registry import entry_algorithms
from buddysim.report.quantities import bytes_text, share_text
from buddysim.report.screen import NOTHING, Column, Part, Table, print_screen, printable
from buddysim.trace import open_trace

NAME = "profile"
HELP = """choose a target ratio for each allocation

Compresses every entry of every snapshot (or takes the sizes that the trace has) and counts the sectors that entries
need. Of each allocation, a share of entries up to the Buddy Threshold may overflow its ratio."""

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
    check_outputs([args.output], [args.file])
    with open_trace(args.file) as trace:
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
        spread = ratio_spread(trace, options)
        if args.output is not None:
            found.targets.save(args.output, f"made from the trace {trace.fingerprint}\n{_how(found)}")
    if args.json:
        print(json.dumps(found.to_dict(), indent=2))
        return 0
    written = [f"targets written to {args.output}"] if args.output is not None else []
    print_screen([*_show(found, spread), *written])
    return 0


def _show(found: Profile, spread: tuple[float, float] | None) -> list[Part]:
    """The screen; of drawn sizes the ratio is given as it spreads over seeds."""
    headings = ("snap-\nshots", *(f"{state}\nsectors" if state.isdigit() else state for state in STATES))
    table = Table(
        [
            Column("allocation", left=True),
            *map(Column, ("bytes", *headings, "target", "buddy\naccesses", "in the worst\nsnapshot")),
        ],
        [_cells(found, row) for row in found.rows],
    )
    free = found.free_placement_ratio
    measured = f"ratio {found.ratio:.2f} (entries placed freely in 8 sizes: {free:.2f})"
    ratio = measured if spread is None else f"ratio {spread[0]:.2f} to {spread[1]:.2f}, drawn"
    parts: list[Part] = [table, ""]
    parts.append(f"{ratio}, static buddy-access share {share_text(found.buddy_access_share)} ({_how(found)})")
    if any(row.drawn for row in found.rows):
        drawn = Distribution.load(found.options.distribution)
        parts.append(
            f"* the trace has no values: sizes drawn from a distribution ({drawn.name}), not measured; targets and "
            f"accesses are those of seed {found.options.seed}, the ratio is over {DRAWN_SEEDS} seeds ({drawn.source})"
        )
    unseen = [row.name for row in found.rows if row.unseen]
    if unseen:
        names = ", ".join(map(printable, unseen))
        parts.append(f"without sizes up to launch {found.options.until}, kept whole: {names}")
    if found.host:
        parts.append(f"in host memory, without a target: {', '.join(map(printable, found.host))}")
    return parts


def _cells(found: Profile, row: AllocationProfile) -> list[str]:
    shares = [share_text(share) if share else NOTHING for share in row.histogram]
    overflow, worst = float(found.overflow(row)), float(found.overflow(row, "worst"))
    return [
        printable(row.name) + (_ASSUMED if row.drawn else ""),
        bytes_text(row.bytes),
        str(len(row.snapshots)) if row.snapshots else "none",
        *shares,
        row.target.name,
        share_text(overflow),
        share_text(worst),
    ]


def _how(found: Profile) -> str:
    options = found.options
    decides = "the worst snapshot decides" if options.aggregate == "worst" else "the mean over the snapshots decides"
    sizes = f", sizes by {options.algorithm}" if options.algorithm != ProfileOptions.algorithm else ""
    until = f", snapshots up to launch {options.until}" if options.until is not None else ""
    return f"policy {options.policy}, threshold {options.threshold:g}, {decides}{sizes}{until}"
