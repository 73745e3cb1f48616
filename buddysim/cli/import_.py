"""``python -m buddysim import``: traces of other tools as trace files."""

from __future__ import annotations

import argparse
import shlex
import sys

from rich.console import Console

from buddysim.base.errors import BuddysimError
from buddysim.importers.accelsim import Options, import_accelsim, parse_snapshot

NAME = "import"
HELP = "convert traces of another tool into a trace file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    formats = parser.add_subparsers(title="formats", dest="format", metavar="FORMAT", required=True)
    accelsim = formats.add_parser(
        "accelsim", help="SASS traces of Accel-Sim's tracer, versions 1 to 6", allow_abbrev=False
    )
    accelsim.add_argument("kernelslist", metavar="KERNELSLIST", help="kernelslist.g, or kernelslist of raw traces")
    accelsim.add_argument("-o", "--output", required=True, metavar="OUT.bin", help="the trace file to write")
    accelsim.add_argument(
        "--snapshot",
        action="append",
        default=[],
        metavar="FILE@POINT",
        help="memory contents after POINT kernels: 0xADDRESS.bin, or a folder of such files",
    )
    accelsim.add_argument("--skip-missing", action="store_true", help="go on without kernel files that are missing")
    accelsim.add_argument("--include-local", action="store_true", help="make operations of local memory too")
    accelsim.add_argument(
        "--contents-every",
        type=int,
        default=1,
        metavar="N",
        help="keep the bytes of every N-th page of 8 KiB that is known, 0: of none (default 1)",
    )
    accelsim.add_argument("--source", default="", help="where the trace comes from, for its provenance")
    accelsim.add_argument("--licence", default="", help="licence of the source, for its provenance")


def run(args: argparse.Namespace) -> int:
    if args.contents_every < 0:
        raise BuddysimError(f"import: --contents-every {args.contents_every}: expected 0 or more")
    options = Options(
        skip_missing=args.skip_missing,
        include_local=args.include_local,
        snapshots=[file for text in args.snapshot for file in parse_snapshot(text)],
        contents_every=args.contents_every,
        source=args.source,
        licence=args.licence,
        command=shlex.join(["buddysim", *sys.argv[1:]]),
    )
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        with console.status("") as status:
            summary = import_accelsim(args.kernelslist, args.output, options, status.update)
    else:
        summary = import_accelsim(args.kernelslist, args.output, options)
    for warning in summary.warnings:
        print(f"buddysim: warning: {warning}", file=sys.stderr)
    counts = summary.counts
    print(
        f"{args.output}: {summary.kernels} kernels, {counts['warp_instructions']} warp instructions "
        f"({counts['lane_instructions']} lane instructions), {counts['memory_lines']} memory lines "
        f"({counts['predicated_off']} predicated off), {counts['barriers']} barriers, {counts['lines']} lines "
        f"of 128 B, {counts['sectors']} sectors; {summary.allocations} allocations, {summary.snapshots} snapshots"
    )
    return 0
