"""Converts a bundle of an OpenCL capture (a folder, or a .tar.xz of one) to a trace file.

python tools/convert_opencl_bundle.py BUNDLE -o OUT.bin [--launches FIRST:END] [--contents-every N]
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from buddysim.base.budget import OPTION, larger_budget
from buddysim.base.errors import BuddysimError
from buddysim.cli.sizes import size_bytes
from buddysim.importers.opencl import BundleImportOptions, convert_bundle

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.archive import folder_with  # noqa: E402


def parse_launches(text: str) -> tuple[int, int]:
    """Parse ``FIRST:END``, END not included."""
    first, colon, end = text.partition(":")
    if not colon or not first.isdecimal() or not end.isdecimal() or int(first) >= int(end) or int(end) >= 1 << 32:
        raise argparse.ArgumentTypeError(f"{text!r}, expected FIRST:END with FIRST < END")
    return int(first), int(end)


def main(argv: Sequence[str] | None = None) -> int:
    """Convert one bundle."""
    parser = argparse.ArgumentParser(prog="convert_opencl_bundle.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="folder with meta.jsonl, or archive of one")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.bin")
    parser.add_argument("--launches", type=parse_launches, metavar="FIRST:END", help="default: all that were recorded")
    parser.add_argument(
        "--contents-every",
        type=int,
        default=1,
        metavar="N",
        help="keep every N-th page of a buffer, 0: none; size maps are of all that a snapshot holds (default 1)",
    )
    parser.add_argument(
        "--contents-after",
        type=int,
        action="append",
        metavar="LAUNCH",
        help="take in only the snapshot after this launch (may be repeated); default: all",
    )
    parser.add_argument("--source", default="")
    parser.add_argument("--licence", default="")
    parser.add_argument("--level", type=int, default=19, choices=range(1, 20), metavar="1..19", help="of zstd")
    parser.add_argument(OPTION, metavar="SIZE", help="bytes that an archive may become, such as 4 GiB (default: 1 GiB)")
    args = parser.parse_args(argv)
    arguments = sys.argv[1:] if argv is None else argv
    try:
        if args.contents_every < 0:
            raise BuddysimError(f"--contents-every {args.contents_every}: expected 0 or more")
        budget = None if args.input_budget is None else size_bytes(OPTION, args.input_budget)
        with larger_budget(budget), folder_with(args.bundle, "meta.jsonl") as folder:
            options = BundleImportOptions(
                launches=args.launches,
                contents_every=args.contents_every,
                snapshots=args.contents_after,
                source=args.source or folder.name,
                licence=args.licence,
                command=shlex.join(["tools/convert_opencl_bundle.py", *arguments]),
                compression_level=args.level,
            )
            summary = convert_bundle(folder, args.output, options)
    except (BuddysimError, OSError) as error:
        print(f"convert_opencl_bundle.py: error: {error}", file=sys.stderr)
        return 2
    print(
        f"{args.output}: {summary.kernels} kernels, {summary.operations} warp operations, "
        f"{summary.lane_accesses} lane accesses, {summary.snapshots} snapshots"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
