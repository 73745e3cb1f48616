"""Fuzzes all types in turn, with new seeds, for some minutes: ``make fuzz MINUTES=60``; keeps what breaks the promise.

    python -m tests.fuzz --minutes 60 [--seed N] [--types trace,study] [--out out/fuzz]

Each line on the standard output is a round of a type: its seed and how many files; at the end the figures of each
type. A case that broke the promise is made as small as hypothesis can, and kept in the folder: its files,
``command.txt``, and ``error.txt``. Exit code 1 if there was any.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.case import cases, check
from tests.fuzz.file_types import TYPES, Files, FileType

ROUND = int(os.environ.get("BUDDYSIM_FUZZ_CASES", "200"))


def main() -> int:
    """Fuzzes until the time is over."""
    parser = argparse.ArgumentParser(description="fuzzes every type of file")
    parser.add_argument("--minutes", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9, help="of the first round")
    parser.add_argument("--types", help="names, by commas (default: all)")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="where to keep what breaks the promise")
    args = parser.parse_args()
    chosen = [kind for kind in TYPES if args.types is None or kind.name in args.types.split(",")]
    end = time.monotonic() + 60 * args.minutes
    counts: Counter[tuple[str, str]] = Counter()
    number = args.seed
    while time.monotonic() < end:
        for kind in chosen:
            _round(kind, number, counts, args.out)
            if time.monotonic() > end:
                break
        number += 1
    for kind in chosen:
        taken, refused, broken = (counts[kind.name, what] for what in ("taken", "refused", "broken"))
        print(f"{kind.name:18} {taken + refused:7} files: {taken} taken, {refused} refused, {broken} broken rounds")
    return 1 if any(what == "broken" for _, what in counts) else 0


def _round(kind: FileType, number: int, counts: Counter[tuple[str, str]], out: Path) -> None:
    began = time.process_time()
    with tempfile.TemporaryDirectory(prefix="buddysim-fuzz-") as temporary:
        folder = Path(temporary) / "case"

        @seed(number)
        @settings(
            max_examples=ROUND,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
        )
        @given(cases(kind))
        def run(case: tuple[Files, tuple[str, ...]]) -> None:
            counts[kind.name, "refused" if check(folder, *case) else "taken"] += 1

        try:
            run()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            counts[kind.name, "broken"] += 1
            kept = out / f"{kind.name}-{number}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept, symlinks=True)
            (kept / "error.txt").write_text("".join(traceback.format_exception(error)))
            print(f"{kind.name}: seed {number}: BROKEN, kept in {kept}: {str(error)[:200]!r}", flush=True)
    print(f"{kind.name}: seed {number}: {time.process_time() - began:.1f} s of processor time", flush=True)


if __name__ == "__main__":
    sys.exit(main())
