"""CPU instructions of three replays and one training, counted by Valgrind: ``python -m benchmarks.instructions``.

Each benchmark runs in a process of its own: once to warm up, then once counted, between two signs that it gives. So
neither symbols nor the start of Python matter. Counts of one build agree within 0.01 %, where times differ by some
percent. Needs Valgrind (`apt install valgrind`).

``--store`` appends the counts, with the commit, to ``benchmarks/instructions.csv``; ``--plot FILE`` draws that table.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

HISTORY = Path(__file__).parent / "instructions.csv"
COLUMNS = ("commit", "date", "benchmark", "unit", "count", "instructions_per_unit")
ROOT = Path(__file__).parents[1]


def synthetic(workload: str, settings: Mapping[str, str], unit: str) -> Callable[[Path], tuple[int, str]]:
    """Return a replay of a synthetic workload: it returns how many units it had, and their name."""

    def replay(folder: Path) -> tuple[int, str]:
        import buddysim
        from buddysim.buddy import profile
        from buddysim.synthetic import make_trace

        path = folder / f"{workload}.bin"
        if not path.exists():
            make_trace(workload, path, settings)
        with buddysim.open_trace(path) as trace:
            targets = profile(trace).targets
            result = buddysim.simulate(trace, "p100-nvlink2", "buddy", targets, sensitivity="none")
        return int(result.counters[unit]), unit

    return replay


def shipped(folder: Path) -> tuple[int, str]:
    """Replay a real trace."""
    import buddysim

    trace = ROOT / "traces" / "vectoradd-ampere.bin"
    result = buddysim.simulate(trace, "a100-40", "bandwidth-compression", sensitivity="none")
    return int(result.counters["memory_instructions"]), "memory_instructions"


def training(folder: Path) -> tuple[int, str]:
    """Simulate an iteration of vDNN's GoogLeNet."""
    from buddysim.training import simulate

    result = simulate("googlenet", 128, "titan-x", "vdnn-all-p")
    return len(result.to_dict()["per_layer"]), "layers"


BENCHMARKS: Mapping[str, Callable[[Path], tuple[int, str]]] = {
    "stream": synthetic("stream", {"footprint": "8 MiB", "lines_per_warp": "64"}, "memory_instructions"),
    "random": synthetic(
        "random", {"footprint": "64 MiB", "operations": "3584", "operations_per_warp": "8"}, "line_accesses"
    ),
    "vectoradd-ampere": shipped,
    "training": training,
}


def work(name: str, folder: Path) -> None:
    """Run a benchmark as the counted process: warm up, say so, wait, run, say so."""
    BENCHMARKS[name](folder)
    print("ready", flush=True)
    sys.stdin.readline()
    count, unit = BENCHMARKS[name](folder)
    print(f"{count} {unit}", flush=True)
    sys.stdin.readline()


def counted(name: str, folder: Path) -> tuple[int, str, int]:
    """Return units, their name, and the instructions of a benchmark."""
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null", sys.executable]
    try:
        run = subprocess.Popen(
            [*command, "-m", __spec__.name, "--worker", name, str(folder)],
            env=os.environ | {"PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    except FileNotFoundError:
        sys.exit("benchmarks.instructions: valgrind is missing: apt install valgrind")
    assert run.stdin is not None
    assert run.stdout is not None
    said = [run.stdout.readline()]
    for state in ("on", "off"):
        if not said[-1]:  # the benchmark has ended: its error follows
            break
        switched = subprocess.run(["callgrind_control", "-i", state, str(run.pid)], capture_output=True, text=True)
        if switched.returncode:
            run.kill()
            sys.exit(f"benchmarks.instructions: {name}: callgrind_control failed: {switched.stderr[-2000:]}")
        run.stdin.write("\n")
        run.stdin.flush()
        if state == "on":
            said.append(run.stdout.readline())
    _, errors = run.communicate()
    count = re.search(r"Collected : (\d+)", errors)
    if run.returncode or not count or said[0] != "ready\n":
        sys.exit(f"benchmarks.instructions: {name}: valgrind failed: {errors[-2000:]}")
    units, unit = said[1].split()
    return int(units), unit, int(count[1])


def commit() -> tuple[str, str]:
    """Return the commit of the working tree and its day."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%h %cs"]
    short, day = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return short, day


def store(rows: list[tuple[object, ...]]) -> None:
    """Append rows to the history."""
    is_new = not HISTORY.exists()
    with HISTORY.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *rows] if is_new else rows)


def plot(output: Path) -> None:
    """Draw instructions per unit of each benchmark over the commits, relative to the first."""
    from matplotlib.figure import Figure

    with HISTORY.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    commits = list(dict.fromkeys(row["commit"] for row in rows))
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    for name in dict.fromkeys(row["benchmark"] for row in rows):
        own = {row["commit"]: float(row["instructions_per_unit"]) for row in rows if row["benchmark"] == name}
        first = next(iter(own.values()))
        axes.plot(
            [commits.index(one) for one in own], [value / first for value in own.values()], marker="o", label=name
        )
    axes.set_xticks(range(len(commits)), commits, rotation=90)
    axes.set_ylabel("instructions, relative to the first commit")
    axes.legend()
    figure.savefig(output)


def main() -> None:
    description = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=description)
    parser.add_argument("--only", choices=BENCHMARKS, help="one benchmark")
    parser.add_argument("--store", action="store_true", help=f"append the counts to {HISTORY.name}")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the stored counts; count nothing")
    parser.add_argument("--worker", nargs=2, metavar=("BENCHMARK", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(args.worker[0], Path(args.worker[1]))
        return
    if args.plot:
        plot(args.plot)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in [args.only] if args.only else BENCHMARKS:
            count, unit, instructions = counted(name, Path(folder))
            each = f"{instructions / count:.1f}"
            print(f"{name}: {each} instructions for each of {count} {unit}", flush=True)
            if args.store:
                store([(*commit(), name, unit, count, each)])


if __name__ == "__main__":
    main()
