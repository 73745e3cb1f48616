"""A study of 10,000 short points whose workers and driver are killed at random moments, against an undisturbed run."""

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
#: Of the kills, those that meet the driver; the others meet a worker.
DRIVERS_SHARE = 0.2


@dataclass
class Disturbed:
    """What was seen of a study that was killed again and again.

    Attributes
    ----------
    workers, drivers : how many were killed
    lost : results that were there when a driver was killed, and later not
    seconds : from the first start to the last end
    """

    workers: int = 0
    drivers: int = 0
    lost: int = 0
    seconds: float = 0.0


def measure(folder: Path, quick: bool) -> list[Measurement]:
    """Kills are spread over the study's points, so that they meet its start and its middle; the end is left to end."""
    links, seeds = (10, 20) if quick else (100, 100)
    kills = KILLS // 10 if quick else KILLS
    trace, study = folder / "kills.bin", folder / "kills.toml"
    make_trace("chase", trace, {"footprint": "64 KiB"})
    texts = ", ".join(f'"{rate} GB/s"' for rate in range(20, 20 + links))
    study.write_text(STUDY.format(trace=trace.absolute(), links=texts, seeds=", ".join(map(str, range(seeds)))))
    seen = _disturbed(study, folder / "disturbed", links * seeds, kills)
    began = time.perf_counter()
    run_sweep(read_study(study), store=folder / "undisturbed", workers=WORKERS)
    undisturbed_s = time.perf_counter() - began
    return _rows(seen, _compared(study, folder), undisturbed_s, links * seeds)


def _disturbed(study: Path, place: Path, points: int, kills: int) -> Disturbed:
    """Runs the study's command until it ends well, killing a process each time that so many more points are there."""
    chance, seen = random.Random(20), Disturbed()
    moments = sorted(chance.uniform(0, 0.8 * points) for _ in range(kills))
    log = place.with_suffix(".jsonl")
    began, there = time.perf_counter(), set[str]()
    with log.open("w") as events:
        command = [sys.executable, "-m", "buddysim", "run_sweep", str(study), "--store", str(place), "--json-lines",
                   "--workers", str(WORKERS)]  # fmt: skip
        driver = subprocess.Popen(command, stdout=events)
        while (code := driver.poll()) != 0:
            if code is not None:
                assert code == -signal.SIGKILL, f"the sweep ended with {code}"
                driver = subprocess.Popen(command, stdout=events)
            time.sleep(chance.uniform(0.01, 0.1))
            if moments and _lines(log) >= moments[0] and driver.poll() is None:
                workers = _workers(driver.pid)
                if not workers:
                    continue
                moments.pop(0)
                if chance.random() < DRIVERS_SHARE:
                    driver.kill()
                    driver.wait()
                    seen.drivers += 1
                    now = Store.at(place).all_keys()
                    seen.lost += len(there - now)
                    there = now
                else:
                    _kill(chance.choice(workers))
                    seen.workers += 1
    seen.seconds = time.perf_counter() - began
    seen.lost += len(there - Store.at(place).all_keys())
    assert not moments, f"{len(moments)} kills were left when the study ended"
    assert not seen.lost, f"{seen.lost} results were there when a driver was killed, and not at the end"
    return seen


def _lines(log: Path) -> int:
    """Events so far, most of them of points that are done."""
    return log.read_bytes().count(b"\n")


def _workers(driver: int) -> list[int]:
    """The worker processes of a driver."""
    found: list[int] = []
    try:
        for thread in Path(f"/proc/{driver}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    except OSError:
        return []
    return [pid for pid in found if b"spawn_main" in _command(pid)]


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
    """Points whose result is there once, and the same as in the undisturbed run."""
    disturbed, other = Store.at(folder / "disturbed"), Store.at(folder / "undisturbed")
    names = disturbed.singles().keys()
    same = 0
    for point in read_study(study).points():
        one, two = disturbed.get(point.key), other.get(point.key)
        same += one is not None and two is not None and (one.identity, one.result) == (two.identity, two.result)
    assert len(names) == len(other.singles())
    assert not disturbed.notes
    return same


def _rows(seen: Disturbed, same: int, undisturbed_s: float, points: int) -> list[Measurement]:
    name = f"sweep: {points:,} points, {seen.workers} workers and {seen.drivers} drivers killed"

    def row(what: str, unit: str, figure: float, asked: float | None = None) -> Measurement:
        return Measurement.of_repetitions(f"{name}, {what}", unit, [figure], asked=asked)

    return [
        row("points there once and bit-identical", "", same, points),
        row("time", "s", seen.seconds),
        row("time undisturbed", "s", undisturbed_s),
    ]
