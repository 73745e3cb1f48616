"""Overhead of a sweep: time per point, two workers compared with bare processes, and Dask alone."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks import sweep_kills, sweep_store
from benchmarks.measurement import Measurement
from buddysim.sweep.api import Results, run_sweep
from buddysim.synthetic import make_trace

#: A process that simulates the same points without a sweep: the next seed is the next byte of a common pipe.
#: It retains freed memory as workers do: otherwise, page faults may load 32 MB again for every point.
BARE = """
import os, sys
import buddysim
from buddysim.sweep.memory_grants import keep_freed_memory
from buddysim.trace import open_trace
keep_freed_memory()
trace = open_trace(sys.argv[1])
machine = buddysim.Machine.load("p100-nvlink2")
buddysim.simulate(trace, machine, seed=0)
print("ready", flush=True)
while seed := os.read(0, 1):
    buddysim.simulate(trace, machine, seed=seed[0])
os._exit(0)
"""
ROUNDS = 7
NO_OPS = 2000


def measure(folder: Path, quick: bool) -> list[Measurement]:
    """Measure the overhead with short points, and the gain with longer ones."""
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")  # indexes of temporary stores
    short = folder / "short.bin"
    make_trace("random", short, {"footprint": "1 MiB", "operations": "2000"})
    points = 100 if quick else 1000
    rows = _overhead(folder, short, points)
    if not quick:
        for operations in (200_000, 800_000):
            longer = folder / f"random-{operations}.bin"
            make_trace("random", longer, {"footprint": "8 MiB", "operations": str(operations)})
            rows.append(_gain(folder, longer, 24))
    return [*rows, *_dask(), *sweep_store.measure(folder, quick), *sweep_kills.measure(folder, quick)]


def _swept(folder: Path, trace: Path, points: int, workers: int) -> Results:
    store_path = folder / f"store-{workers}-{time.monotonic_ns()}"
    results = run_sweep(
        set={"trace": str(trace)}, grid={"seed": list(range(points))}, store=store_path, workers=workers
    )
    assert not results.summary.failures
    return results


def _overhead(folder: Path, trace: Path, points: int) -> list[Measurement]:
    rows = []
    for workers in (1, 2):
        summary = _swept(folder, trace, points, workers).summary
        overhead = (workers * summary.wall_s - summary.simulated_s) / points
        within = (summary.busy_s - summary.simulated_s) / points
        what = f"sweep: overhead per point, {workers} worker{'s' if workers > 1 else ''}"
        rows.append(Measurement.of_repetitions(what, "ms", [1000 * overhead], required=20, smaller_is_better=True))
        rows.append(Measurement.of_repetitions(f"{what}, of it naming and storing", "ms", [1000 * within]))
    return rows


def _gain(folder: Path, trace: Path, points: int) -> Measurement:
    """Return the speedup of two workers, in percent of the speedup of two bare processes: the median of rounds.

    The order of the runs alternates between rounds, so that other load affects all alike.
    """
    percentages, point_s, runs = [], [], [("bare", 1), ("swept", 1), ("swept", 2), ("bare", 2)]
    for number in range(ROUNDS):
        seconds = {
            (mode, count): _bare(trace, points, count)
            if mode == "bare"
            else _swept(folder, trace, points, count).summary.wall_s
            for mode, count in (runs if number % 2 else reversed(runs))
        }
        gain = {mode: seconds[mode, 1] / seconds[mode, 2] for mode in ("bare", "swept")}
        percentages.append(100 * gain["swept"] / gain["bare"])
        point_s.append(seconds["bare", 1] / points)
    name = f"sweep: gain of two workers against two bare processes, points of {statistics.median(point_s):.2f} s"
    median = statistics.median(percentages)
    return Measurement(name, "%", best=median, median=median, required=95, all=tuple(percentages))


def _bare(trace: Path, points: int, count: int) -> float:
    """Return the seconds that `count` parallel processes take for some points, at most 256, once all are ready."""
    seeds, feed = os.pipe()
    command = [sys.executable, "-c", BARE, str(trace)]
    started = [subprocess.Popen(command, stdin=seeds, stdout=subprocess.PIPE) for _ in range(count)]
    os.close(seeds)
    for each in started:
        assert each.stdout is not None
        each.stdout.readline()
    began = time.perf_counter()
    os.write(feed, bytes(range(points)))
    os.close(feed)
    for each in started:
        each.wait()
    return time.perf_counter() - began


def _dask() -> list[Measurement]:
    """Measure the tasks per second that a scheduler distributes and collects, with empty tasks."""
    from distributed import Client

    from buddysim.sweep.certificates import RunCertificates
    from buddysim.sweep.cluster import local_cluster

    with (
        tempfile.TemporaryDirectory() as folder,
        closing(RunCertificates(Path(folder))) as certificates,
        local_cluster(2, certificates.security()) as cluster,
        Client(cluster) as client,
    ):
        client.gather(client.map(abs, range(100)))
        began = time.perf_counter()
        futures = [client.submit(abs, number, pure=False) for number in range(NO_OPS)]
        client.gather(futures)
        seconds = time.perf_counter() - began
    return [Measurement.of_repetitions("sweep: tasks of Dask's scheduler", "1/s", [NO_OPS / seconds])]
