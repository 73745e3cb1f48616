"""A study of 10,000 points whose workers and driver are killed at random times, compared with an undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measurement import Measurement
from buddysim.sweep.api import run_sweep
from buddysim.sweep.store import Store
from buddysim.sweep.study_file import read_study
from buddysim.synthetic import make_trace

STUDY = """
[set]
trace = "{trace}"
[grid]
link.bandwidth = [{links}]
seed = [{seeds}]
"""
KILLS = 50
WORKERS = 2
#: Fraction of the kills that hit the driver; the others hit a worker.
DRIVER_FRACTION = 0.2


@dataclass
class Disturbed:
    """Observations of a study whose processes were killed repeatedly.

    Attributes
    ----------
    workers, drivers : number of killed processes
    lost : results that existed when a driver was killed, and later did not
    seconds : from the first start to the last end
    """

    workers: int = 0
    drivers: int = 0
    lost: int = 0
    seconds: float = 0.0


def measure(folder: Path, quick: bool) -> list[Measurement]:
    """Measure a disturbed study; kills are spread over its first 80 % of points, so that it can finish."""
    links, seeds = (10, 20) if quick else (100, 100)
    kills = KILLS // 10 if quick else KILLS
    trace, study = folder / "kills.bin", folder / "kills.toml"
    make_trace("chase", trace, {"footprint": "64 KiB"})
    texts = ", ".join(f'"{rate} GB/s"' for rate in range(20, 20 + links))
    study.write_text(STUDY.format(trace=trace.absolute(), links=texts, seeds=", ".join(map(str, range(seeds)))))
    observed = _disturbed(study, folder / "disturbed", links * seeds, kills)
    began = time.perf_counter()
    run_sweep(read_study(study), store=folder / "undisturbed", workers=WORKERS)
    undisturbed_s = time.perf_counter() - began
    return _rows(observed, _compared(study, folder), undisturbed_s, links * seeds)


def _disturbed(study: Path, store_path: Path, points: int, kills: int) -> Disturbed:
    """Run the study's command until it succeeds, and kill a process each time a number of points is complete."""
    generator, observed = random.Random(20), Disturbed()
    kill_points = sorted(generator.uniform(0, 0.8 * points) for _ in range(kills))
    log = store_path.with_suffix(".jsonl")
    began, stored = time.perf_counter(), set[str]()
    with log.open("w") as events:
        command = [sys.executable, "-m", "buddysim", "sweep", str(study), "--store", str(store_path), "--json-lines",
                   "--workers", str(WORKERS)]  # fmt: skip
        driver = subprocess.Popen(command, stdout=events)
        while (code := driver.poll()) != 0:
            if code is not None:
                assert code == -signal.SIGKILL, f"the sweep ended with {code}"
                driver = subprocess.Popen(command, stdout=events)
            time.sleep(generator.uniform(0.01, 0.1))
            if kill_points and _lines(log) >= kill_points[0] and driver.poll() is None:
                workers = _workers(driver.pid)
                if not workers:
                    continue
                kill_points.pop(0)
                if generator.random() < DRIVER_FRACTION:
                    driver.kill()
                    driver.wait()
                    observed.drivers += 1
                    now = Store.at(store_path).all_keys()
                    observed.lost += len(stored - now)
                    stored = now
                else:
                    _kill(generator.choice(workers))
                    observed.workers += 1
    observed.seconds = time.perf_counter() - began
    observed.lost += len(stored - Store.at(store_path).all_keys())
    assert not kill_points, f"{len(kill_points)} kills were left when the study ended"
    assert not observed.lost, f"{observed.lost} results existed when a driver was killed, and not at the end"
    return observed


def _lines(log: Path) -> int:
    """Count the events so far, most of them of completed points."""
    return log.read_bytes().count(b"\n")


def _workers(driver: int) -> list[int]:
    """Return the worker processes of a driver."""
    children: list[int] = []
    try:
        for thread in Path(f"/proc/{driver}/task").iterdir():
            children += map(int, (thread / "children").read_text().split())
    except OSError:
        return []
    return [pid for pid in children if b"spawn_main" in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _compared(study: Path, folder: Path) -> int:
    """Count the points with one result that equals the one of the undisturbed run."""
    disturbed, other = Store.at(folder / "disturbed"), Store.at(folder / "undisturbed")
    names = disturbed.singles().keys()
    same = 0
    for point in read_study(study).points():
        one, two = disturbed.get(point.key), other.get(point.key)
        same += one is not None and two is not None and (one.identity, one.result) == (two.identity, two.result)
    assert len(names) == len(other.singles())
    assert not disturbed.notes
    return same


def _rows(observed: Disturbed, same: int, undisturbed_s: float, points: int) -> list[Measurement]:
    name = f"sweep: {points:,} points, {observed.workers} workers and {observed.drivers} drivers killed"

    def row(what: str, unit: str, figure: float, required: float | None = None) -> Measurement:
        return Measurement.of_repetitions(f"{name}, {what}", unit, [figure], required=required)

    return [
        row("points stored once and bit-identical", "", same, points),
        row("time", "s", observed.seconds),
        row("time undisturbed", "s", undisturbed_s),
    ]
