"""Fuzzes all types, with new seeds, for some minutes: ``make fuzz MINUTES=60``; saves the files that break the promise.

    python -m tests.fuzz --minutes 60 [--seed N] [--types trace,study] [--out out/fuzz]

Each line of standard output is a round of a type: its seed and its time; the last lines are the totals of each type.
hypothesis shrinks a case that broke the promise; the folder gets its files, ``command.txt`` and ``error.txt``.
Exit code 1 if there was such a case.
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
    """Fuzz until the time is over."""
    parser = argparse.ArgumentParser(description="fuzzes every type of file")
    parser.add_argument("--minutes", type=float, default=60, help="minutes to fuzz (default: 60)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9, help="seed of the first round")
    parser.add_argument("--types", help="names of types, separated by commas (default: all)")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="output folder of broken cases")
    args = parser.parse_args()
    kinds = [kind for kind in TYPES if args.types is None or kind.name in args.types.split(",")]
    end = time.monotonic() + 60 * args.minutes
    counts: Counter[tuple[str, str]] = Counter()
    number = args.seed
    while time.monotonic() < end:
        for kind in kinds:
            _round(kind, number, counts, args.out)
            if time.monotonic() > end:
                break
        number += 1
    for kind in kinds:
        accepted, refused, broken = (counts[kind.name, outcome] for outcome in ("accepted", "refused", "broken"))
        print(
            f"{kind.name:18} {accepted + refused:7} files: {accepted} accepted, {refused} refused, "
            f"{broken} broken rounds"
        )
    return 1 if any(outcome == "broken" for _, outcome in counts) else 0


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
            counts[kind.name, "refused" if check(folder, *case) else "accepted"] += 1

        try:
            run()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            counts[kind.name, "broken"] += 1
            saved = out / f"{kind.name}-{number}"
            shutil.rmtree(saved, ignore_errors=True)
            shutil.copytree(folder, saved, symlinks=True)
            (saved / "error.txt").write_text("".join(traceback.format_exception(error)))
            print(f"{kind.name}: seed {number}: BROKEN, saved in {saved}: {str(error)[:200]!r}", flush=True)
    print(f"{kind.name}: seed {number}: {time.process_time() - began:.1f} s of processor time", flush=True)


if __name__ == "__main__":
    sys.exit(main())
