"""``python -m benchmarks.turns OTHER``: replay's speed by that of another build, in turns.

OTHER is a checkout, built. Both builds replay the benchmarks of `replay_speed` alternately, each in a process of its
own: what else the computer does meets both, so their ratio says more than two figures of different minutes.
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

HERE = Path(__file__).resolve().parent


class Build:
    """A build in a process of its own."""

    def __init__(self, checkout: Path, folder: Path, quick: bool) -> None:
        folder.mkdir()
        self.process = subprocess.Popen(
            [checkout / ".venv" / "bin" / "python", HERE / "turns_worker.py", folder, json.dumps(settings(quick))],
            cwd=checkout,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(self) -> object:
        """What the process says next."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"benchmarks.turns: error: the build ended (status {self.process.wait()})")
        return json.loads(line)

    def turn(self, workload: str) -> float:
        """Nanoseconds of processor time of each line or instruction, in one run."""
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


def report(workload: str, ours: list[float], theirs: list[float]) -> str:
    """The ratio of speeds, turn by turn, and both builds' times."""
    ratios = [other / own for own, other in zip(ours, theirs, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return (
        f"{workload}: {middle:.3f} of the other build's speed (half of {len(ratios)} turns: {low:.3f} to {high:.3f}; "
        f"by the fastest turns {min(theirs) / min(ours):.3f}); ns each: {statistics.median(ours):.1f} "
        f"(at best {min(ours):.1f}), the other {statistics.median(theirs):.1f} ({min(theirs):.1f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.turns", description="replay's speed by that of another build, in turns"
    )
    parser.add_argument("other", metavar="OTHER", type=Path, help="a checkout of another commit, built")
    parser.add_argument("--turns", type=int, default=25, help="of each build and benchmark (default 25)")
    parser.add_argument("--quick", action="store_true", help="smaller inputs")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        checkouts = {"this": HERE.parent, "other": args.other}
        builds = [Build(checkout, Path(folder, name), args.quick) for name, checkout in checkouts.items()]
        for build in builds:
            print(f"replays with {build.answer()}", file=sys.stderr)
        for workload in settings(args.quick):
            times: list[list[float]] = [[], []]
            for turn in range(args.turns + 1):
                for i in (0, 1) if turn % 2 else (1, 0):
                    time = builds[i].turn(workload)
                    if turn:  # the first one warms up
                        times[i].append(time)
            print(report(workload, *times), flush=True)
        for build in builds:
            build.end()


if __name__ == "__main__":
    main()
