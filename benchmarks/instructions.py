"""CPU instructions of a replay, counted by Valgrind: ``python -m benchmarks.instructions``.

The benchmarks are those of `replay_speed`, smaller. The count is half the difference between a process that simulates
three times and one that simulates once: so neither symbols nor the start of Python matter. Two counts of one build
agree within 0.01 %, where times differ by some percent. Needs Valgrind (`apt install valgrind`).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import buddysim
from buddysim.buddy import profile
from buddysim.synthetic import make_trace

SETTINGS = {
    "stream": {"footprint": "32 MiB", "lines_per_warp": "64"},
    "random": {"footprint": "64 MiB", "operations": "14336", "operations_per_warp": "8"},
}
COUNTED = {"stream": "memory_instructions", "random": "line_accesses"}


def simulate(workload: str, folder: Path, times: int) -> int:
    """Simulate a benchmark several times; return the operations of one."""
    path = folder / f"{workload}.bin"
    if not path.exists():
        make_trace(workload, path, SETTINGS[workload])
    with buddysim.open_trace(path) as trace:
        targets = profile(trace).targets
        for _ in range(times):
            result = buddysim.simulate(trace, "p100-nvlink2", "buddy", targets, sensitivity="none")
    return int(result.counters[COUNTED[workload]])


def instructions(workload: str, folder: Path, times: int) -> int:
    """Instructions of a process that simulates `times` times."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, "-m", __spec__.name]
    try:
        run = subprocess.run(
            [*command, "--worker", workload, str(folder), str(times)],
            env=os.environ | {"PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        sys.exit("benchmarks.instructions: valgrind is missing: apt install valgrind")
    count = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode or not count:
        sys.exit(f"benchmarks.instructions: {workload}: valgrind failed: {run.stderr[-2000:]}")
    return int(count[1])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("--worker", nargs=3, metavar=("WORKLOAD", "FOLDER", "TIMES"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        simulate(args.worker[0], Path(args.worker[1]), int(args.worker[2]))
        return
    with tempfile.TemporaryDirectory() as name:
        for workload in SETTINGS:
            operations = simulate(workload, Path(name), 1)
            once, thrice = (instructions(workload, Path(name), times) for times in (1, 3))
            one = (thrice - once) / 2
            print(
                f"{workload}: {one / operations:.1f} instructions for each of {operations} {COUNTED[workload]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
