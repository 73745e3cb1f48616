"""The command ``import accelsim``: its arguments and its execution."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from buddysim.base.errors import BuddysimError
from buddysim.compress import DEFAULT
from buddysim.compress.compressors import find_for_size_maps, size_map_algorithms
from buddysim.importers import ImportResult
from buddysim.importers.accelsim.import_options import AccelsimImportOptions, parse_snapshot
from buddysim.importers.accelsim.importer import import_accelsim

SUMMARY = "SASS traces of Accel-Sim's tracer, versions 1 to 6"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("kernelslist", metavar="KERNELSLIST", help="kernelslist.g, or kernelslist of raw traces")
    parser.add_argument(
        "--snapshot",
        action="append",
        default=[],
        metavar="FILE@POINT",
        help="memory contents after POINT kernels: 0xADDRESS.bin, or a folder of such files",
    )
    parser.add_argument("--skip-missing", action="store_true", help="go on without kernel files that are missing")
    parser.add_argument("--include-local", action="store_true", help="make operations of local memory too")
    parser.add_argument(
        "--contents-every",
        type=int,
        default=1,
        metavar="N",
        help="period of the known 8 KiB pages whose bytes are kept; 0: none (default: 1)",
    )
    parser.add_argument(
        "--compressor",
        default=DEFAULT,
        metavar="NAME",
        help=f"compressor of the size maps: {', '.join(size_map_algorithms())} (default: %(default)s)",
    )
    parser.add_argument("--source", default="", help="where the trace comes from, for its provenance")
    parser.add_argument("--licence", default="", help="licence of the source, for its provenance")


def import_trace(args: argparse.Namespace, command: str, progress: Callable[[str], object]) -> ImportResult:
    """Import the traces of a kernelslist."""
    if args.contents_every < 0:
        raise BuddysimError(f"import: --contents-every {args.contents_every}: expected 0 or more")
    find_for_size_maps(args.compressor)
    options = AccelsimImportOptions(
        skip_missing=args.skip_missing,
        include_local=args.include_local,
        snapshots=[file for text in args.snapshot for file in parse_snapshot(text)],
        contents_every=args.contents_every,
        compressor=args.compressor,
        source=args.source,
        licence=args.licence,
        command=command,
    )
    summary = import_accelsim(args.kernelslist, args.output, options, progress)
    counts = summary.counts
    kernels = "1 kernel" if summary.kernels == 1 else f"{summary.kernels:,} kernels"
    return ImportResult(
        f"{args.output}: {kernels}, {counts['warp_instructions']} warp instructions "
        f"({counts['lane_instructions']} lane instructions), {counts['memory_lines']} memory lines "
        f"({counts['predicated_off']} predicated off), {counts['barriers']} barriers, {counts['lines']} lines "
        f"of 128 B, {counts['sectors']} sectors; {summary.allocations} allocations, {summary.snapshots} snapshots",
        tuple(summary.warnings),
    )
