"""``python -m buddysim profile``: target ratios of a trace's allocations, and the sizes they depend on."""

from __future__ import annotations

import argparse

from buddysim.base.output import check_outputs
from buddysim.buddy import Distribution, ProfileOptions, profile_with
from buddysim.buddy.profile_options import AGGREGATES, POLICIES
from buddysim.cli.json_output import add_json_argument, is_on_stdout, json_file, write_plain_json
from buddysim.compress.compressors import entry_algorithms
from buddysim.report.profile_screen import describe_options, profile_parts
from buddysim.report.screen import print_screen
from buddysim.trace import open_trace
from buddysim.trace.partial import partial_contents, require_complete

NAME = "profile"
HELP = """choose a target ratio for each allocation and write a targets file

Every entry of every snapshot is compressed, unless the trace has its size. A target ratio is the largest at which the
fraction of entries that overflow stays within the Buddy Threshold."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.completion import completes

    completes(parser.add_argument("file", metavar="FILE", help="the trace file"), "file")
    parser.add_argument(
        "--threshold",
        type=float,
        default=ProfileOptions.threshold,
        metavar="FRACTION",
        help="Buddy Threshold: fraction of an allocation's entries that may overflow (default: %(default)s)",
    )
    parser.add_argument(
        "--aggregate",
        choices=AGGREGATES,
        default=ProfileOptions.aggregate,
        help="snapshots to which the threshold applies: worst: every one; mean: their average (default: worst)",
    )
    parser.add_argument(
        "--policy",
        choices=POLICIES,
        default=ProfileOptions.policy,
        help="rule that chooses targets; final: one per allocation, 16x for mostly zero ones; "
        "per-allocation: without 16x; naive: one for all (default: %(default)s)",
    )
    parser.add_argument(
        "--zero-fraction",
        type=float,
        default=ProfileOptions.zero_fraction,
        metavar="FRACTION",
        help="lowest fraction of entries that fit 8 B in every snapshot, for a target of 16x (default: %(default)s)",
    )
    parser.add_argument(
        "--compressor",
        default=ProfileOptions.compressor,
        metavar="NAME",
        help=f"compressor that gives the sizes of entries: {', '.join(entry_algorithms())} (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=ProfileOptions.seed,
        metavar="N",
        help="seed of the synthetic sizes (default: %(default)s)",
    )
    parser.add_argument(
        "--size-distribution",
        default=ProfileOptions.size_distribution,
        metavar="NAME",
        help=f"distribution of the synthetic sizes: {', '.join(Distribution.names())} (default: %(default)s)",
    )
    parser.add_argument(
        "--profile-until-launch",
        type=int,
        default=ProfileOptions.profile_until_launch,
        metavar="N",
        help="number of launches up to which snapshots are profiled (default: all)",
    )
    parser.add_argument("--partial", action="store_true", help="accept a trace file whose end is missing")
    parser.add_argument("-o", "--output", metavar="FILE.toml", help="targets file to write, for run --targets")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    check_outputs([args.output, json_file(args)], [args.file])
    with open_trace(args.file) as trace:
        require_complete(trace, args.partial)
        contents = partial_contents(trace)
        options = ProfileOptions(
            args.threshold,
            args.aggregate,
            args.policy,
            args.compressor,
            args.seed,
            args.size_distribution,
            args.zero_fraction,
            profile_until_launch=args.profile_until_launch,
        )
        profile = profile_with(trace, options)
        if args.output is not None:
            profile.targets.save(args.output, f"made from the trace {trace.fingerprint}\n{describe_options(profile)}")
    write_plain_json(args, profile.to_dict())
    if is_on_stdout(args):
        return 0
    partial = [f"PARTIAL TRACE: {contents}"] if contents is not None else []
    saved = f"targets written to {args.output}" if args.output is not None else "targets not saved (-o FILE)"
    print_screen([*partial, *profile_parts(profile, saved)])
    return 0
