"""What a sweep costs besides its simulations: overhead per point, two workers against bare processes, Dask alone."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks import sweep_kills, sweep_store
from benchmarks.measurement import Measurement
from buddysim.sweep.api import Results, sweep
from buddysim.synthetic import make_trace

#: One process that simulates the same points without a sweep, as a user's script would: says its seconds of simulation.
BARE = """
import sys, time
import buddysim
from buddysim.trace import open_trace
trace = open_trace(sys.argv[1])
machine = buddysim.Machine.load("p100-nvlink2")
buddysim.simulate(trace, machine, seed=0)
print("ready", flush=True)
sys.stdin.readline()
for seed in range(int(sys.argv[2])):
    buddysim.simulate(trace, machine, seed=seed)
"""
TURNS = 3
NO_OPS = 2000


def measure(folder: Path, quick: bool) -> list[Measurement]:
    """Short points for the overhead, longer ones for the gain; turns alternate, so that load meets all alike."""
    short, longer = folder / "short.bin", folder / "longer.bin"
    make_trace("random", short, {"footprint": "1 MiB", "operations": "2000"})
    make_trace("random", longer, {"footprint": "8 MiB", "operations": "100000"})
    points = 100 if quick else 1000
    rows = _overhead(folder, short, points)
    if not quick:
        rows += _gain(folder, longer, 24)
    return [*rows, *_dask(), *sweep_store.measure(folder, quick), *sweep_kills.measure(folder, quick)]


def _swept(folder: Path, trace: Path, points: int, workers: int) -> Results:
    place = folder / f"store-{workers}-{time.monotonic_ns()}"
    results = sweep(set={"trace": str(trace)}, grid={"seed": list(range(points))}, store=place, workers=workers)
    assert not results.summary.failures
    return results


def _overhead(folder: Path, trace: Path, points: int) -> list[Measurement]:
    rows = []
    for workers in (1, 2):
        summary = _swept(folder, trace, points, workers).summary
        overhead = (workers * summary.wall_s - summary.simulated_s) / points
        within = (summary.busy_s - summary.simulated_s) / points
        what = f"sweep: overhead per point, {workers} worker{'s' if workers > 1 else ''}"
        rows.append(Measurement.of_repetitions(what, "ms", [1000 * overhead], asked=20, smaller_is_better=True))
        rows.append(Measurement.of_repetitions(f"{what}, of it naming and storing", "ms", [1000 * within]))
    return rows


def _gain(folder: Path, trace: Path, points: int) -> list[Measurement]:
    """How much faster two are than one, as a share of what bare processes gain in the same turns."""
    shares = []
    for _ in range(TURNS):
        bare = {count: _bare(trace, points // count, count) for count in (1, 2)}
        swept = {count: _swept(folder, trace, points, count).summary.wall_s for count in (1, 2)}
        shares.append(100 * (swept[1] / swept[2]) / (bare[1] / bare[2]))
    return [Measurement.of_repetitions("sweep: gain of two workers against two bare processes", "%", shares, asked=95)]


def _bare(trace: Path, points: int, count: int) -> float:
    """Seconds that so many processes at once take for as many points each, from when all are ready."""
    command = [sys.executable, "-c", BARE, str(trace), str(points)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)
    ]
    for each in started:
        assert each.stdout is not None
        assert each.stdin is not None
        each.stdout.readline()
    began = time.perf_counter()
    for each in started:
        each.communicate("go\n")
    return time.perf_counter() - began


def _dask() -> list[Measurement]:
    """Tasks per second that a scheduler hands out and takes back, with work that takes no time."""
    from distributed import Client

    from buddysim.sweep.cluster import local_cluster

    with local_cluster(2) as cluster, Client(cluster) as client:
        client.gather(client.map(abs, range(100)))
        began = time.perf_counter()
        futures = [client.submit(abs, number, pure=False) for number in range(NO_OPS)]
        client.gather(futures)
        seconds = time.perf_counter() - began
    return [Measurement.of_repetitions("sweep: tasks of Dask's scheduler", "1/s", [NO_OPS / seconds])]
