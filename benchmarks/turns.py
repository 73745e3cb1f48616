"""Paired benchmark of the replay's speed: this build and another one.

The argument OTHER is a built checkout. Both builds replay the benchmarks of `replay_speed` alternately, each in its own
process: other load of the computer affects both, so their ratio is more exact than two figures of different minutes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.replay_speed import settings

HERE, NAME = Path(__file__).resolve().parent, Path(__file__).stem


class Build:
    """A build in its own process."""

    def __init__(self, checkout: Path, folder: Path, quick: bool) -> None:
        folder.mkdir()
        self.process = subprocess.Popen(
            [checkout / ".venv" / "bin" / "python", HERE / f"{NAME}_worker.py", folder, json.dumps(settings(quick))],
            cwd=checkout,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(self) -> object:
        """Return the next line of the process."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"benchmarks.{NAME}: error: the build ended (status {self.process.wait()})")
        return json.loads(line)

    def run(self, workload: str) -> float:
        """Run a benchmark once; return nanoseconds of processor time per line or instruction."""
        assert self.process.stdin is not None
        self.process.stdin.write(workload + "\n")
        self.process.stdin.flush()
        answer = self.answer()
        assert isinstance(answer, dict)
        return float(answer["per_ns"])

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def report(workload: str, this: list[float], other: list[float]) -> str:
    """Format the ratio of speeds, pair by pair, and both builds' times."""
    ratios = [other_time / time for time, other_time in zip(this, other, strict=True)]
    low, median, high = statistics.quantiles(ratios, n=4)
    return (
        f"{workload}: {median:.3f} of the other build's speed (half of {len(ratios)} pairs: {low:.3f} to {high:.3f}; "
        f"by the fastest runs {min(other) / min(this):.3f}); ns each: {statistics.median(this):.1f} "
        f"(at best {min(this):.1f}), the other {statistics.median(other):.1f} ({min(other):.1f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{NAME}",
        description="paired benchmark of the replay's speed: this build, another one",
    )
    parser.add_argument("other", metavar="OTHER", type=Path, help="a built checkout of another commit")
    parser.add_argument("--pairs", type=int, default=25, help="pairs of runs of each benchmark (default: 25)")
    parser.add_argument("--quick", action="store_true", help="smaller inputs")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        checkouts = {"this": HERE.parent, "other": args.other}
        builds = [Build(checkout, Path(folder, name), args.quick) for name, checkout in checkouts.items()]
        for build in builds:
            print(f"replays with {build.answer()}", file=sys.stderr)
        for workload in settings(args.quick):
            times: list[list[float]] = [[], []]
            for pair in range(args.pairs + 1):
                for i in (0, 1) if pair % 2 else (1, 0):
                    time = builds[i].run(workload)
                    if pair:  # the first one warms up
                        times[i].append(time)
            print(report(workload, *times), flush=True)
        for build in builds:
            build.end()


if __name__ == "__main__":
    main()
