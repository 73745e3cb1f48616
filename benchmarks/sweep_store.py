"""A store of 100,000 results over 1,000 machines: its index, a query, a dry run, bytes and files per second."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.measurement import Measurement
from buddysim.sweep.point import SweepPoint
from buddysim.sweep.store import Store
from buddysim.sweep.stored_result import StoredResult, key_of, make_record
from buddysim.sweep.study import PointKeys
from buddysim.synthetic import make_trace

STUDY = """
[set]
trace = "{trace}"
[grid]
link.bandwidth = [{links}]
seed = [{seeds}]
"""


def measure(folder: Path, quick: bool) -> list[Measurement]:
    """Measure a store with copies of one result under the keys of the study's points."""
    machines, seeds = (100, 20) if quick else (1000, 100)
    trace = folder / "one.bin"
    make_trace("chase", trace, {"footprint": "64 KiB"})
    links = ", ".join(f'"{rate} MB/s"' for rate in range(20_000, 20_000 + machines))
    study = folder / "study.toml"
    study.write_text(STUDY.format(trace=trace.absolute(), links=links, seeds=", ".join(map(str, range(seeds)))))
    store_path, cache = folder / "store", folder / "cache"
    try:
        return [*_filling(study, store_path), *_queries(study, store_path, cache, machines * seeds)]
    finally:
        for each in (store_path, cache):
            shutil.rmtree(each, ignore_errors=True)


def _filling(study: Path, store_path: Path) -> list[Measurement]:
    from buddysim.sweep.study_file import read_study

    points, keys = list(read_study(study).points()), PointKeys()
    store = Store.at(store_path)
    store.check_writable()
    first = points[0]
    record = make_record(first, first.sweep_engine.simulate(first.settings), 0.05, 10**8)
    began, size = time.perf_counter(), 0
    for point in points:
        size += store.put(_copy(record, point, keys.key_of(point)))
    seconds = time.perf_counter() - began
    return [
        Measurement.of_repetitions("sweep: bytes of a stored result", "B", [size / len(points)]),
        Measurement.of_repetitions("sweep: results written by one process", "1/s", [len(points) / seconds]),
    ]


def _copy(record: StoredResult, point: SweepPoint, key: str) -> StoredResult:
    """Return the record under the key of a point, with its identity."""
    identity = point.identity
    assert key_of(identity) == key
    row = {**record.row, "key": key, "seed": point.settings["seed"], "settings_hash": point.settings_hash}
    row["link.bandwidth"] = float(str(point.settings["link.bandwidth"]).split()[0]) * 1e6
    return replace(record, key=key, identity=identity, row=row)


def _queries(study: Path, store_path: Path, cache: Path, count: int) -> list[Measurement]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "BUDDYSIM_STORE": str(store_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has compiled modules
    environment["PYTHONPYCACHEPREFIX"] = str(cache)

    def timed(what: str, *arguments: str, times: int = 1, max_s: float) -> list[Measurement]:
        """Measure the wall-clock seconds of a command, and its processor time, which other load doesn't change."""
        clock, processor = [], []
        for _ in range(times):
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            command = [sys.executable, "-m", "buddysim", *arguments]
            subprocess.run(command, check=True, env=environment, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            clock.append(time.perf_counter() - began)
            processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        name = f"sweep: {count:,} results, {what}"
        return [
            Measurement.of_repetitions(name, "s", clock, required=max_s, smaller_is_better=True),
            Measurement.of_repetitions(f"{name}, processor time", "s", processor, smaller_is_better=True),
        ]

    condition = "link.bandwidth > 20.5 GB/s and seed = 7"
    query = ("results", "--where", condition, "--columns", "link.bandwidth,seed,time_ps,slowdown_vs_ideal")
    return [
        *timed("index lost, and a query", *query, max_s=60),
        *timed("a query", *query, times=3, max_s=2),
        *timed("a dry run of as many points", "sweep", str(study), "--dry-run", times=3, max_s=2),
    ]
