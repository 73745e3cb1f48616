"""Fuzzes all types with new seeds: ``make fuzz MINUTES=60``, or ``make fuzz INPUTS=100000`` for a night.

    python -m tests.fuzz [--minutes 60] [--inputs 100000] [--seed N] [--types trace,study] [--out out/fuzz] [--corpus]

Each line of standard output is a round of a type: its seed and its time; the last lines are the table of all types.
``OUT/log.json`` has its counts, which further runs add to; `--inputs` is their sum. hypothesis shrinks a broken
case; ``OUT/TYPE-SEED`` gets its files, ``command.txt`` and ``error.txt``. Exit code 1 if there was such a case.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.case import cases, check_reader
from tests.fuzz.corpus import Corpus
from tests.fuzz.file_types import TYPES, Files, FileType
from tests.fuzz.log import Counts, read_log, table, write_log

#: Processor time of a round of a type, and the files in it.
ROUND_S = 1.0
LEAST, MOST = 20, 400


def main() -> int:
    """Fuzz until the time is over, or there were enough files."""
    parser = argparse.ArgumentParser(description="fuzzes every type of file")
    parser.add_argument("--minutes", type=float, default=math.inf, help="minutes to fuzz")
    parser.add_argument("--inputs", type=int, default=sys.maxsize, help="files to fuzz, with those of OUT/log.json")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9, help="seed of the first round")
    parser.add_argument("--types", help="names of types, separated by commas (default: all)")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="output folder of log and broken cases")
    parser.add_argument("--corpus", action="store_true", help="add what ends in a new way to tests/fuzz/corpus")
    args = parser.parse_args()
    kinds = [kind for kind in TYPES if args.types is None or kind.name in args.types.split(",")]
    end, number = time.monotonic() + 60 * args.minutes, args.seed
    log = read_log(args.out / "log.json")
    sizes = dict.fromkeys((kind.name for kind in kinds), LEAST)
    corpora = {kind.name: _renewed(kind) if args.corpus else Corpus(kind.name) for kind in kinds}
    while time.monotonic() < end and sum(counts.files for counts in log.values()) < args.inputs:
        for kind in kinds:
            counts, corpus = log.setdefault(kind.name, Counts()), corpora[kind.name]
            took = _round(kind, number, sizes[kind.name], counts, args.out, corpus)
            sizes[kind.name] = min(MOST, max(LEAST, int(sizes[kind.name] * ROUND_S / max(took, 0.01))))
            write_log(args.out / "log.json", log)
            if args.corpus:
                corpus.write()
            if time.monotonic() > end:
                break
        number += 1
    print(table(log))
    return 1 if any(counts.broken for counts in log.values()) else 0


def _renewed(kind: FileType) -> Corpus:
    """Return the corpus of a type by the ways in which its cases end today."""
    stored, renewed = Corpus(kind.name), Corpus(kind.name)
    with tempfile.TemporaryDirectory(prefix="buddysim-fuzz-") as folder:
        for case in stored.read() if stored.path.exists() else ():
            outcome = check_reader(Path(folder) / "case", kind, *case, 0)
            renewed.add(outcome.reason or "accepted", *case)
    return renewed


def _round(kind: FileType, number: int, size: int, counts: Counts, out: Path, corpus: Corpus) -> float:
    """Fuzz some files of a type; return the processor time."""
    began = time.process_time()
    with tempfile.TemporaryDirectory(prefix="buddysim-fuzz-") as temporary:
        folder = Path(temporary) / "case"

        @seed(number)
        @settings(
            max_examples=size,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
        )
        @given(cases(kind), st.integers(0, 47))
        def run(case: tuple[Files, tuple[str, ...]], whole: int) -> None:
            before = time.process_time()
            outcome = check_reader(folder, kind, *case, whole)
            counts.slowest_s = max(counts.slowest_s, time.process_time() - before)
            counts.accepted += outcome.accepted
            counts.refused += not outcome.accepted
            counts.commands += outcome.ran
            if outcome.reason:
                counts.reasons.add(outcome.reason)
            corpus.add(outcome.reason or "accepted", *case)

        try:
            run()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            counts.broken += 1
            saved = out / f"{kind.name}-{number}"
            shutil.rmtree(saved, ignore_errors=True)
            shutil.copytree(folder, saved, symlinks=True)
            (saved / "error.txt").write_text("".join(traceback.format_exception(error)))
            print(f"{kind.name}: seed {number}: BROKEN, saved in {saved}: {str(error)[:200]!r}", flush=True)
    took = time.process_time() - began
    print(f"{kind.name}: seed {number}: {size} files, {took:.1f} s of processor time", flush=True)
    return took


if __name__ == "__main__":
    sys.exit(main())
