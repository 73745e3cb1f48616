"""Sweeps that are disturbed: schedulers killed, signals at random times, disks that stay full (`make kills`).

Each disturbed command ends with one line, or as an undisturbed one; the store then holds what undisturbed sweeps store.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from buddysim.sweep.api import run_sweep
from buddysim.sweep.store import Store
from buddysim.sweep.study import StudyReader
from tests.sweep.conftest import stable

ROOT = Path(__file__).parents[2]
LUD = str(ROOT / "traces" / "lud256.bin")
#: Of a sweep that a signal ends, and of one whose scheduler is killed.
_FEW, _MANY = 4, 32
_LONGEST_S = 300.0
#: Every line that a disturbed sweep may write on standard error.
_LINE = re.compile(
    r"[\d,]+ points: |(store|workers|stopped|done|next|progress|note|waiting|estimate) +\S| {10}\S|$"
    r"|buddysim: (interrupted|stopped by SIG\w+); nothing half-written was left$"
    r"|buddysim: error: [^\n]+(the scheduler is gone|the scheduler does not answer|the same command continues)"
)


@dataclass
class Disturbances:
    """Disturbs sweeps on one store, and compares it with an undisturbed one.

    Attributes
    ----------
    folder : of the stores
    seed : of the random times
    endings : how the commands ended, by kind
    """

    folder: Path
    seed: int
    endings: Counter[str] = field(default_factory=Counter)
    _n_points: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.store = self.folder / "store"

    def kill_scheduler(self) -> None:
        """Kill a scheduler that runs points at a random time; continue with the next disturbance."""
        files = Path(tempfile.mkdtemp(dir=self.folder))
        scheduler = self._start_dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file",
                                     str(files / "scheduler.json"))  # fmt: skip
        worker = None
        try:
            address = _wait_for(lambda: json.loads((files / "scheduler.json").read_text())["address"])
            worker = self._start_dask("worker", address, "--nthreads", "1", "--no-nanny", "--preload",
                                      "buddysim.sweep.worker", "--local-directory", str(files))  # fmt: skip
            before = len(Store.at(self.store).all_keys())
            command = self._start(_MANY, "--scheduler", address)
            if self.chance.random() < 0.8:  # else while it connects, or before a worker is there
                _wait_for(lambda: len(Store.at(self.store).all_keys()) > before or command.poll() is not None)
            time.sleep(self.chance.uniform(0, 1.5))
            scheduler.kill()
            self._check("scheduler killed", command, {0, 2})
        finally:
            for process in (scheduler, worker):
                if process is not None:
                    process.kill()
                    process.wait()

    def interrupt(self, longest_s: float) -> None:
        """Send a signal at a random time from the command's first line to its end: Ctrl-C to all processes."""
        command = self._start(_FEW, "--workers", "2")
        _wait_for(lambda: _handles(command.pid, signal.SIGTERM) or command.poll() is not None)
        time.sleep(self.chance.uniform(0, longest_s))
        number = self.chance.choice([signal.SIGINT] * 4 + [signal.SIGTERM])
        if command.poll() is None:
            (os.killpg if number == signal.SIGINT else os.kill)(command.pid, number)
        self._check(f"signal {number.name}", command, {0, 128 + number})

    def undisturbed_s(self) -> float:
        """Return how long a sweep takes from its first line to its end."""
        command = self._start(_FEW, "--workers", "2")
        _wait_for(lambda: _handles(command.pid, signal.SIGTERM))
        began = time.monotonic()
        self._check("undisturbed", command, {0})
        return time.monotonic() - began

    def fill_disk(self) -> None:
        """Run a sweep on a disk that stays full; the same command continues when there is space."""
        disk = Path(tempfile.mkdtemp(dir=self.folder))
        mount = ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(disk)]
        is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        try:
            began = time.monotonic()
            limit = None if is_mounted else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4000, -1))
            command = self._start(80, "--workers", "2", store=disk / "store", prepare=limit)
            self._check("disk full", command, {2}, "free some space there; the same command continues")
            assert time.monotonic() - began < _LONGEST_S
            if is_mounted:
                subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
            self._n_points -= 80
            self._check("disk with space again", self._start(80, "--workers", "2", store=disk / "store"), {0})
            self._compare(Store.at(disk / "store"), range(self._n_points - 80, self._n_points))
        finally:
            if is_mounted:
                subprocess.run(["umount", "-l", str(disk)], check=True)

    def compare(self) -> None:
        """Finish all points, and compare every result with that of an undisturbed sweep."""
        run_sweep(_study(range(self._n_points)), store=self.store, workers=1)
        self._compare(Store.at(self.store), range(self._n_points))

    def _compare(self, store: Store, seeds: range) -> None:
        undisturbed = run_sweep(_study(seeds), store=Path(tempfile.mkdtemp(dir=self.folder)), workers=1)
        assert undisturbed.summary.failures == []
        assert len(undisturbed) == len(seeds)
        for record in undisturbed:
            assert stable(store.get(record.key)) == stable(record)
        assert store.notes == []

    def _start(
        self, points: int, *options: str, store: Path | None = None, prepare: Callable[[], object] | None = None
    ) -> subprocess.Popen[str]:
        seeds = ",".join(map(str, range(self._n_points, self._n_points + points)))
        self._n_points += points

        def prepare_process() -> None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell lets its background jobs ignore Ctrl-C
            if prepare is not None:
                prepare()

        command = ["sweep", LUD, "--scheme", "buddy", "--seed", seeds, "--store", str(store or self.store), *options]
        return subprocess.Popen(
            [sys.executable, "-m", "buddysim", *command],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=prepare_process,
            env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "1000"},
        )

    def _start_dask(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--no-dashboard", *options]
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True, env=env)

    def _check(self, what: str, command: subprocess.Popen[str], codes: set[int], expected: str = "") -> None:
        _, text = command.communicate(timeout=_LONGEST_S)
        self.endings[f"{what}: exit code {command.returncode}"] += 1
        assert command.returncode in codes, f"{what}: {command.returncode}\n{text}"
        assert expected in text, text
        for line in text.splitlines():
            assert _LINE.match(line), f"{what}: {line!r} in\n{text}"


def _study(seeds: range) -> Any:
    return StudyReader("kills").read({"set": {"trace": LUD, "scheme": "buddy"}, "grid": {"seed": list(seeds)}})


def _handles(pid: int, number: int) -> bool:
    """Whether a process catches a signal: it has executed the first line of buddysim."""
    match = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return match is not None and bool(int(match[1], 16) >> (number - 1) & 1)


def _wait_for(value: Callable[[], Any]) -> Any:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            result = value()
        except (OSError, ValueError):
            result = None
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError("nothing happened for two minutes")


def main() -> int:
    """Run the disturbances that the command line counts."""
    parser = argparse.ArgumentParser(prog="tests.sweep.kills", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--schedulers", type=int, default=20, metavar="N", help="schedulers killed (default: 20)")
    parser.add_argument("--signals", type=int, default=200, metavar="N", help="signals sent (default: 200)")
    parser.add_argument("--disks", type=int, default=2, metavar="N", help="disks that stay full (default: 2)")
    parser.add_argument("--seed", type=int, default=47, metavar="N", help="of the random times (default: 47)")
    args = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        disturbances = Disturbances(Path(folder), args.seed)
        steps = [(disturbances.kill_scheduler, args.schedulers)]
        if args.signals:
            longest_s = max(disturbances.undisturbed_s() for _ in range(2))
            steps += [(lambda: disturbances.interrupt(longest_s), args.signals)]
        for step, count in [*steps, (disturbances.fill_disk, args.disks)]:
            for _ in range(count):
                step()
        disturbances.compare()
    for ending, count in sorted(disturbances.endings.items()):
        print(f"{count:5}  {ending}")
    print(f"nothing lost, every result as undisturbed; {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
