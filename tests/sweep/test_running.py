"""Points give the same results serially and on workers, with failures, kills, full disks and interruptions."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.sweep import memory_grants
from buddysim.sweep.api import run_sweep
from buddysim.sweep.engines import replay
from buddysim.sweep.estimate import Estimate
from buddysim.sweep.execute import BUG, KILLED, MEMORY, REFUSED, run_point
from buddysim.sweep.plan import make_plan
from buddysim.sweep.point import SweepPoint
from buddysim.sweep.runner import DEATHS, TRIES, PointTask, Runner
from buddysim.sweep.store import Store
from buddysim.sweep.study import StudyReader
from tests.sweep.conftest import stable
from tests.sweep.kills import Disturbances

ROOT = Path(__file__).parents[2]
LUD = str(ROOT / "traces" / "lud256.bin")
needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="needs pip install 'buddysim[sweep]'"
)


def study(points: int) -> Any:
    return StudyReader("test").read({"set": {"trace": LUD}, "grid": {"seed": list(range(points))}})


# -- one point ---------------------------------------------------------------------------------------------------------


@pytest.mark.unexpected
def test_a_failure_is_one_of_the_point(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    point = SweepPoint("replay", {"trace": LUD})
    for error, why in ((BuddysimError("no"), REFUSED), (MemoryError(), MEMORY), (ValueError("odd"), BUG)):

        def fail(settings: Any, error: Exception = error) -> Any:
            raise error

        monkeypatch.setattr(replay, "simulate", fail)
        outcome = run_point(point.spec(), str(store.folder))
        assert outcome["why"] == why
        assert outcome["reason"]
    assert "ValueError: odd; report saved in " in outcome["reason"]
    assert store.all_keys() == set()


def test_a_trace_that_changes_or_vanishes_during_a_sweep_is_a_failed_point(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "t.bin"
    path.write_bytes(Path(LUD).read_bytes())
    spec = SweepPoint("replay", {"trace": str(path)}).spec()
    path.write_bytes((ROOT / "traces" / "backprop16k.bin").read_bytes())
    assert run_point(spec, str(store.folder))["reason"] == "what it reads has changed since the sweep began"
    path.unlink()
    assert "No such file" in run_point(spec, str(store.folder))["reason"]
    assert store.all_keys() == set()


@pytest.mark.skipif("BUDDYSIM_SANITIZED" in os.environ, reason="a sanitizer reserves terabytes")
def test_memory_beyond_the_grant_is_distinguished_from_a_bug(store: Store) -> None:
    code = (
        "import sys, json\nimport numpy\nfrom buddysim.sweep.execute import run_point\n"
        "from buddysim.sweep.engines import replay\nfrom buddysim.sweep.point import SweepPoint\n"
        "spec = SweepPoint('replay', {'trace': sys.argv[1]}).spec()\n"
        "replay.simulate = lambda settings: numpy.ones(1 << 28)\n"
        "print(json.dumps(run_point(spec, sys.argv[2], 1 << 28)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, LUD, str(store.folder)], capture_output=True, text=True, check=True
    )
    outcome = json.loads(done.stdout)
    assert outcome["why"] == MEMORY
    assert "256 MiB" in outcome["reason"]
    with memory_grants.limited(1 << 30):
        pass  # a grant that is not used up leaves no trace


@pytest.mark.skipif("BUDDYSIM_SANITIZED" in os.environ, reason="a sanitizer has an allocator of its own")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_workers_keep_memory_that_points_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `keep_freed_memory`, Dask's settings make every point fault all of its pages in again."""
    code = (
        "import resource\nfrom buddysim.sweep import memory_grants\nmemory_grants.keep_freed_memory()\n"
        "faults = []\n"
        "for _ in range(3):\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "    bytearray(16 << 20)\n"
        "    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)\n"
        "print(faults[-1])"
    )
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100  # of 4,096 pages


# -- many points, in any executor --------------------------------------------------------------------------------------


class Scripted:
    """An executor with a scripted outcome for each try of a point."""

    text = "script"

    def __init__(
        self, script: dict[str, list[str | None]], slots: int = 2, memory_bytes: int | None = None, ahead: int = 0
    ) -> None:
        self.script, self._slots, self.memory_bytes, self._ahead = script, slots, memory_bytes, ahead
        self.running: list[PointTask] = []
        self.together: list[list[tuple[bool, int, int | None]]] = []
        self.tries: list[int] = []

    def slots(self) -> int:
        return self._slots

    def ahead(self) -> int:
        return self._ahead

    def submit(self, task: PointTask, spec: Any) -> None:
        self.running.append(task)
        self.tries.append(task.tries)
        self.together.append([(task.alone, task.memory_bytes, task.grant_bytes) for task in self.running])

    def finished(self, timeout_s: float) -> Iterator[tuple[PointTask, Any]]:
        task = self.running.pop(0)
        ends = self.script.get(task.key, [])
        why = ends.pop(0) if ends else None
        outcome: dict[str, Any] = {"name": task.key, "worker": "w", "seconds": 1.0, "busy_s": 1.0}
        yield task, outcome | ({"why": why, "reason": "because"} if why else {})

    def close(self) -> None:
        pass


def played(store: Store, script: list[list[str | None]], **options: Any) -> tuple[Runner, Scripted, list[Any]]:
    plan = make_plan(study(len(script)), store)
    executor = Scripted(dict(zip(plan.missing, script, strict=True)), **options)
    events: list[Any] = []
    runner = Runner(plan, executor, Estimate(), events.append)
    runner.run()
    return runner, executor, events


def test_a_point_that_fails_is_tried_again_and_then_reported(store: Store) -> None:
    runner, _, events = played(store, [[BUG], [], [BUG, BUG], [REFUSED, None]])
    assert runner.summary.done == 3
    (failure,) = runner.summary.failures
    assert (failure["why"], failure["reason"], failure["point"]["seed"]) == (BUG, "because", 2)
    assert [event["event"] for event in events].count("retry") == 3
    assert TRIES == 2


def test_killed_workers_cost_no_tries_but_not_for_ever(store: Store) -> None:
    runner, _, _ = played(store, [[KILLED] * (DEATHS - 1), [KILLED] * DEATHS, [KILLED, BUG, None]])
    assert runner.summary.done == 2
    assert [failure["why"] for failure in runner.summary.failures] == [KILLED]


def test_points_wait_where_they_are_simulated_but_none_that_has_failed(store: Store) -> None:
    _, executor, _ = played(store, [[BUG, None], [], [], [], [], []], slots=2, ahead=1)
    assert max(len(group) for group in executor.together) == 3
    (again,) = [n for n, tries in enumerate(executor.tries) if tries]
    assert len(executor.together[again]) <= 2


def test_a_point_that_lacked_memory_runs_again_alone_with_all_of_it(store: Store) -> None:
    _, executor, _ = played(store, [[MEMORY, None], [], [], []], memory_bytes=2**31)
    alone = [group for group in executor.together if any(is_alone for is_alone, _, _ in group)]
    assert alone
    assert all(len(group) == 1 for group in alone)
    assert alone[-1][0][2] == 2**31


@pytest.mark.parametrize("memory_bytes", [1, 2**30, 10 * 2**30])
def test_points_that_run_at_once_fit_the_memory(store: Store, memory_bytes: int) -> None:
    _, executor, _ = played(store, [[]] * 12, slots=4, memory_bytes=memory_bytes)
    for group in executor.together:
        assert len(group) == 1 or sum(needed for _, needed, _ in group) <= memory_bytes
    most = max(map(len, executor.together))
    assert most == {1: 1, 2**30: 4, 10 * 2**30: 4}[memory_bytes]


def test_a_store_that_stays_full_ends_the_sweep_and_says_how_to_go_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated, put = [], Store.put

    def briefly(self: Store, record: Any, waiting: Any = None) -> int:
        simulated.append(record.key)
        if len(simulated) > 1:
            monkeypatch.setattr(Store, "write", lambda *arguments: (_ for _ in ()).throw(OSError(28, "No space left")))
        return put(self, record, timeout_s=0.1, waiting=waiting)

    monkeypatch.setattr(Store, "put", briefly)
    with pytest.raises(BuddysimError, match="for 0 s: No space left: 4 points have no result: free some space there"):
        run_sweep(study(5), store=store, workers=1)
    assert len(simulated) == 2  # no further point is simulated for nothing
    assert store.all_keys() == {simulated[0]}


def test_a_point_costs_the_driver_little_memory(store: Store) -> None:
    """A sweep of 100,000 points needs a fraction of a gigabyte."""
    few, many = (_traced_bytes(store, points) for points in (100, 500))
    assert (many - few) / 400 < 4000


def _traced_bytes(store: Store, points: int) -> int:
    tracemalloc.start()
    try:
        plan = make_plan(study(points), store)
        Runner(plan, Scripted({}), Estimate(), lambda event: None).run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_measured_point_needs_what_was_measured(store: Store) -> None:
    point = SweepPoint("replay", {"trace": LUD, "scheme": "buddy"})
    content = point.identity["trace"]
    rows = [{"engine": "replay", "content": content, "scheme": scheme, "seconds": s, "peak_rss_bytes": m}
            for scheme, s, m in (("buddy", 2.0, 10**9), ("ideal", 1.0, 10**8))]  # fmt: skip
    measured = Estimate(rows)
    assert measured.memory_bytes(point) == 1.25 * 10**9
    assert measured.seconds(point) == 2.0
    assert Estimate().seconds(point) is None
    assert 10**8 < Estimate().memory_bytes(point) < 10**9


def test_python_gets_records_and_a_table(store: Store) -> None:
    results = buddysim.run_sweep(
        set={"trace": LUD}, grid={"scheme": ["buddy", "pinned-host"]}, baseline={}, store=store, workers=1
    )
    assert [record.result["provenance"]["scheme"] for record in results] == ["buddy", "pinned-host"]
    ideal = buddysim.simulate(LUD, scheme="ideal").counters["time_ps"]
    for row, scheme in zip(results.rows(), ("buddy", "pinned-host"), strict=True):
        time_ps = buddysim.simulate(LUD, scheme=scheme).counters["time_ps"]
        assert row["slowdown_vs_ideal"] == time_ps / ideal
    again = run_sweep(set={"trace": LUD}, grid={"scheme": ["buddy", "pinned-host"]}, store=store)
    assert again.summary.done == 0
    assert len(again) == len(list(again)) == 2


def test_run_and_simulate_leave_stores_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from buddysim.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BUDDYSIM_STORE", str(tmp_path / "store"))
    assert main(["run", LUD, "--scheme", "ideal", "--json", "r.json"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


# -- worker processes --------------------------------------------------------------------------------------------------


def worker_processes(parent: int) -> list[int]:
    """Return the workers that a process has started."""
    children: list[int] = []
    for thread in Path(f"/proc/{parent}/task").iterdir():
        try:
            children += map(int, (thread / "children").read_text().split())
        except OSError:
            continue
    return [pid for pid in children if b"spawn_main" in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@needs_dask
@pytest.mark.slow
def test_a_killed_worker_costs_its_point_and_nothing_else(store: Store, tmp_path: Path) -> None:
    swept, killed, events = study(24), [], []

    def kill_one(event: Any) -> None:
        events.append(event["event"])
        if events.count("done") == 8 and not killed:  # by now points wait for their workers
            victim = worker_processes(os.getpid())[0]
            killed.append(victim)
            os.kill(victim, signal.SIGKILL)

    results = run_sweep(swept, store=store, workers=2, on_event=kill_one)
    assert killed
    assert events.count("retry") <= 1
    assert results.summary.done == 24
    assert results.summary.failures == []
    one = run_sweep(swept, store=tmp_path / "one", workers=1)
    assert [stable(record) for record in results] == [stable(record) for record in one]
    assert worker_processes(os.getpid()) == []


def command(store: Path, points: int, *more: str) -> list[str]:
    seeds = ",".join(map(str, range(points)))
    return [
        sys.executable,
        "-m",
        "buddysim",
        "sweep",
        LUD,
        "--scheme",
        "buddy",
        "--seed",
        seeds,
        "--store",
        str(store),
        *more,
    ]


@needs_dask
@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "line"), [(signal.SIGINT, "the same command continues"), (signal.SIGHUP, "stopped by SIGHUP")]
)
def test_a_signal_to_all_processes_ends_cleanly_and_the_same_command_goes_on(
    tmp_path: Path, number: signal.Signals, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C, and a terminal that is closed."""
    started = subprocess.Popen(
        command(tmp_path / "s", 150, "--workers", "2"), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while len(Store.at(tmp_path / "s").all_keys()) < 5:
        assert started.poll() is None, started.communicate()
        time.sleep(0.05)
    os.killpg(started.pid, number)  # as a terminal does it: to all of its processes
    _, said = started.communicate(timeout=60)
    assert started.returncode == 128 + number
    assert line in " ".join(said.split())
    assert "Traceback" not in said
    stored = Store.at(tmp_path / "s").all_keys()
    assert 5 <= len(stored) < 150
    assert main(command(tmp_path / "s", 150, "--workers", "1")[3:]) == 0
    assert f"{len(stored)} in the store" in capsys.readouterr().err
    assert len(Store.at(tmp_path / "s").all_keys()) == 150


@needs_dask
@pytest.mark.slow
def test_results_are_the_same_for_1_2_and_4_workers_and_in_any_order(tmp_path: Path) -> None:
    made, tables = [], []
    for workers in (1, 2, 4):
        swept = study(24)
        random.Random(workers).shuffle(swept.axes[-1])
        results = run_sweep(swept, store=tmp_path / str(workers), workers=workers)
        assert results.summary.failures == []
        made.append({record.key: json.dumps(stable(record)) for record in results})
        table = tmp_path / f"{workers}.csv"
        query = "select * exclude (seconds, peak_rss_bytes) from results order by seed, scheme"  # what was measured
        assert main(["results", "--store", str(tmp_path / str(workers)), "--sql", query, "-o", str(table)]) == 0
        tables.append(table.read_bytes())
    assert made[0] == made[1] == made[2]
    assert tables[0] == tables[1] == tables[2]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a small file system; `remount` enlarges it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@needs_dask
@pytest.mark.slow
@pytest.mark.long
def test_fifty_kills_and_a_full_disk_lose_nothing(small_disk: Path, tmp_path: Path) -> None:
    """Workers and drivers die at random times; every point is stored once, as in an undisturbed run."""
    points, kills = 400, 50
    store_folder, chance, killed, full_since = small_disk / "store", random.Random(20), 0, 0.0
    remount = ["mount", "-o", "remount,size=64m", str(small_disk)]
    driver = subprocess.Popen(command(store_folder, points, "--workers", "2"))
    while driver.poll() != 0 or killed < kills:
        if driver.poll() is not None:
            points += 100 * (driver.poll() == 0)  # done before all the kills: a fast machine gets more to do
            driver = subprocess.Popen(command(store_folder, points, "--workers", "2"))
        time.sleep(chance.uniform(0.1, 1.2))
        if not full_since and shutil.disk_usage(small_disk).free < 2 * 4096:
            full_since = time.monotonic()
        if full_since and remount and time.monotonic() - full_since > 5:
            subprocess.run(remount, check=True)
            remount = []
        if killed < kills and driver.poll() is None:
            workers = worker_processes(driver.pid)
            victim = driver.pid if chance.random() < 0.2 or not workers else chance.choice(workers)
            os.kill(victim, signal.SIGKILL)
            killed += 1
            if victim == driver.pid:
                driver.wait()
    assert killed == kills
    assert not remount  # the disk was full, and killed processes left it so for a while
    swept = {"set": {"trace": LUD, "scheme": "buddy"}, "grid": {"seed": list(range(points))}}
    undisturbed = run_sweep(StudyReader("t").read(swept), store=tmp_path / "undisturbed", workers=1)
    disturbed = Store.at(store_folder)
    assert set(disturbed.singles()) == {record.key for record in undisturbed}
    for record in undisturbed:
        assert stable(disturbed.get(record.key)) == stable(record)
    assert disturbed.notes == []


@needs_dask
@pytest.mark.slow
def test_two_sweeps_at_once_on_one_store_lose_nothing(tmp_path: Path) -> None:
    both = [subprocess.Popen(command(tmp_path / "s", 60, "--workers", "2"), stderr=subprocess.PIPE) for _ in range(2)]
    for each in both:
        each.communicate(timeout=120)
        assert each.returncode == 0
    store = Store.at(tmp_path / "s")
    assert len(store.verified(store.all_keys())) == 60
    assert store.notes == []


@needs_dask
@pytest.mark.parametrize("address", ["nonsense", "tcp://", "tcp://host", "tcp://host:port", "127.0.0.1:8786", ""])
def test_an_address_that_is_none_is_refused_before_anything_starts(store: Store, address: str) -> None:
    with pytest.raises(BuddysimError, match="expected an address, tcp://HOST:PORT"):
        run_sweep(study(2), store=store, scheduler=address)


@needs_dask
@pytest.mark.slow
def test_a_scheduler_that_is_there_runs_the_points_and_one_that_dies_is_said(tmp_path: Path) -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        results = run_sweep(study(5), store=tmp_path / "s", scheduler=cluster.scheduler_address)
        assert results.summary.done == 5
        address = cluster.scheduler_address
    began = time.monotonic()
    with pytest.raises(BuddysimError, match="does not answer within 5 s"):
        run_sweep(study(6), store=tmp_path / "s", scheduler=address)
    assert time.monotonic() - began < 15


@needs_dask
@pytest.mark.slow
@pytest.mark.long
def test_killed_schedulers_and_signals_at_random_times_lose_nothing(tmp_path: Path) -> None:
    """`make kills` does more of it, and fills disks."""
    disturbances = Disturbances(tmp_path, seed=47)
    longest_s = disturbances.undisturbed_s()
    for _ in range(3):
        disturbances.kill_scheduler()
    for _ in range(20):
        disturbances.interrupt(longest_s)
    disturbances.compare()


def test_results_as_an_arrow_table(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    results = run_sweep(study(4), store=tmp_path / "s", workers=1)
    table = results.to_arrow()
    assert isinstance(table, pyarrow.Table)
    assert table.num_rows == len(results.rows()) > 1
    assert table.column("time_ps").to_pylist() == [row["time_ps"] for row in results.rows()]
    assert set(table.column_names) == {name for row in results.rows() for name in row}
