"""Every workload at ``small`` is written, verified, deterministic and replayed; failures give one line."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from buddysim.cli import main
from buddysim.contracts.contract import Subject
from buddysim.contracts.workload import not_as_stated
from buddysim.replay import simulate
from buddysim.trace import open_trace
from buddysim.workloads import REGISTRY, batch, make_trace_of
from buddysim.workloads.batch import Order
from buddysim.workloads.make_workload import MadeWorkload
from buddysim.workloads.workload_registry import is_network
from tests.capture.opencl.running import needs_opencl

ROOT = Path(__file__).parents[2]
SOLVERS = [name for name, workload in REGISTRY.items() if not is_network(workload)]


@pytest.fixture(autouse=True)
def opencl() -> None:
    pytest.importorskip("pyopencl")
    needs_opencl()


@pytest.mark.parametrize(
    ("which", "name"),
    [
        pytest.param(which, name, marks=() if (which, name) == ("profile", "ilbdc") else pytest.mark.slow)
        for which in ("profile", "replay")
        for name in SOLVERS
    ],
)
def test_small_keeps_its_contract(name: str, which: str, tmp_path: Path) -> None:
    assert list(not_as_stated(Subject("workload", name, tmp_path), which)) == []
    (file,) = tmp_path.iterdir()
    assert simulate(file, "v100", "buddy").counters


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", SOLVERS)
def test_the_same_file_every_time(name: str, tmp_path: Path) -> None:
    for file in ("one.bin", "two.bin"):
        make_trace_of(name, "small", "profile", tmp_path / file)
    assert (tmp_path / "one.bin").read_bytes() == (tmp_path / "two.bin").read_bytes()


@pytest.mark.slow
def test_a_complete_file_stays_and_others_are_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ep.bin"
    command = ["workloads", "make", "ep", "--scale", "small", "-o", str(path)]
    assert main(command) == 0
    assert "made, verified: sum of X" in " ".join(capsys.readouterr().out.split())
    whole = path.read_bytes()
    assert main(command) == 0
    assert "already present" in " ".join(capsys.readouterr().out.split())
    path.write_bytes(whole[: len(whole) // 2])
    assert main(command) == 0
    assert "made, verified" in " ".join(capsys.readouterr().out.split())
    assert path.read_bytes() == whole
    assert main([*command, "--contents-every", "8"]) == 0
    assert "made, verified" in " ".join(capsys.readouterr().out.split())
    with open_trace(path) as trace:
        assert trace.snapshots[0].read(0) is not None


@pytest.mark.slow
def test_a_failed_verification_writes_nothing_and_says_by_how_much(tmp_path: Path) -> None:
    package = tmp_path / "buddysim"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "buddysim", package, ignore=ignored, copy_function=os.symlink)
    kernel = package / "workloads" / "ep" / "ep.cl"
    changed = kernel.read_text().replace("sum_x += t3", "sum_x += 1.0000001 * t3")
    kernel.unlink()
    kernel.write_text(changed)
    done = subprocess.run(
        [sys.executable, "-m", "buddysim", "workloads", "make", "ep", "--scale", "small", "-o", "ep.bin"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "verification failed: sum of X" in done.stderr
    assert "error 1e-07, allowed 1e-08" in done.stderr
    assert not list(tmp_path.glob("ep.bin*"))


@pytest.mark.slow
def test_an_interrupted_one_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "buddysim", "workloads", "make", "ep", "--scale", "medium", "-o", "ep.bin"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for _ in range(600):
        if any(file.stat().st_size for file in tmp_path.glob(".ep.bin.*")):
            break
        time.sleep(0.1)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal's Ctrl-C does
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 130
    assert messages.endswith("buddysim: interrupted; nothing half-written was left\n")
    assert not list(tmp_path.iterdir())


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, problem in (
        (["make", "epp"], "nearest: ep"),
        (["make", "ep", "-o", "missing/x.bin"], "no folder missing"),
        (["make", "ep", "cg", "-o", "missing", "--scale", "reference"], "expected one of small, medium, paper"),
        (["make", "ep", "--scale", "reference"], "expected one of small, medium, paper"),
        (["make", "ep", "--jobs", "0"], "expected 1 to 1024"),
    ):
        try:
            code = main(["workloads", *arguments])
        except SystemExit as error:
            code = int(error.code or 0)
        assert code == 2
        error_text = capsys.readouterr().err
        assert problem in error_text
        assert error_text.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_folder_of_several_workloads_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ordered: list[Path] = []

    def made(orders: Sequence[Order], jobs: int) -> Iterator[MadeWorkload]:
        ordered.extend(order.path for order in orders)
        yield from ()

    monkeypatch.setattr(batch, "make_all", made)
    assert main(["workloads", "make", "ep", "--input", "both", "-o", str(tmp_path / "new" / "out")]) == 0
    assert [path.name for path in ordered] == ["ep-medium-profile.bin", "ep-medium-replay.bin"]
    assert ordered[0].parent.is_dir()


@pytest.mark.slow
def test_sizes_of_the_run_are_those_of_the_arrays(tmp_path: Path) -> None:
    """EP's numbers don't compress; its last, partial pass leaves the unused end of the sums at zero."""
    path = tmp_path / "ep.bin"
    make_trace_of("ep", "small", "replay", path)
    with open_trace(path) as trace:
        names = [one.name for one in trace.allocations]
        last = trace.snapshots[-1]
        (sizes,) = (one for one in trace.size_maps if (one.snapshot, one.allocation) == (last.index, names.index("sx")))
        used = (1 << 16) % 768 * 8 // 128
        classes = sizes.read()
        assert (classes[used + 1 :] == 0).all()
        assert (classes[:used] != 0).all()


def test_of_all_workloads_networks_keep_no_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ordered: list[Order] = []
    monkeypatch.setattr(batch, "make_all", lambda orders, jobs: ordered.extend(orders) or [])
    assert main(["workloads", "make", "all", "--contents-every", "64", "-o", str(tmp_path)]) == 0
    assert {order.name: order.contents_every for order in ordered} == {
        name: 0 if is_network(workload) else 64 for name, workload in REGISTRY.items()
    }
