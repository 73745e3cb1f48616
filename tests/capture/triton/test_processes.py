"""Programs in several processes: the same trace, values and errors as in one; Ctrl-C leaves a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")
pytest.importorskip("triton", reason="Triton isn't installed: pip install triton==3.9.0")

import torch
import triton
import triton.language as tl

from buddysim.capture.triton_kernels import capture
from buddysim.capture.triton_kernels.program_processes import interpret_in_processes
from buddysim.capture.triton_kernels.status_line import StatusLine
from buddysim.trace import open_trace, verify_trace
from tests.capture.triton.layout_kernels import launches

ROOT = Path(__file__).parents[3]


@triton.jit
def square(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(1) * 40 * BLOCK + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(o + at, value * value, mask=at < n)


def content(path: Path) -> list[object]:
    with open_trace(path) as trace:
        verify_trace(trace)
        kernels = [
            [part.tobytes() for chunk in kernel.chunks for part in records(trace.decode_chunk(chunk))]
            for kernel in trace.kernels
        ]
        last = trace.snapshots[-1]
        return [*kernels, *(last.read(each.index)[1].tobytes() for each in trace.allocations)]


def records(chunk: object) -> list[np.ndarray]:
    return [getattr(chunk, name) for name in ("blocks", "warps", "ops", "lines")]


def test_the_trace_is_that_of_one_process(tmp_path: Path) -> None:
    results = []
    pids = []
    fork = os.fork

    def counted() -> int:
        pid = fork()
        pids.append(pid)
        return pid

    os.fork = counted
    try:
        for workers in (1, 3):
            x, o = torch.linspace(-1, 1, 5_120), torch.zeros(5_120)
            with capture(tmp_path / f"{workers}.bin", workers=workers, snapshots=1):
                square[(40, 2)](x, o, 5_000, BLOCK=64)
            assert torch.equal(o[:5_000], (x * x)[:5_000])
            results.append(content(tmp_path / f"{workers}.bin"))
    finally:
        os.fork = fork
    assert results[0] == results[1]
    assert len(pids) == 3


def test_of_every_second_thread_block_nothing_but_its_values_is_there(tmp_path: Path) -> None:
    x, o = torch.linspace(-1, 1, 256), torch.zeros(256)
    with capture(tmp_path / "out.bin", workers=1, snapshots=1, grid_sample=2):
        square[(4, 1)](x, o, 256, BLOCK=64)
    assert torch.equal(o, x * x)
    with open_trace(tmp_path / "out.bin") as trace:
        (kernel,) = trace.kernels
        blocks = [block for chunk in kernel.chunks for block in trace.decode_chunk(chunk).blocks["block"].tolist()]
    assert blocks == [0, 2]


def test_launches_with_atomics_run_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buddysim.capture.triton_kernels.interpretation.FEWEST_PROGRAMS", 2)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a launch with atomics was split"))
    kernel, grid, arguments = launches()["histogram"]
    with capture(tmp_path / "out.bin", workers=2, snapshots=0):
        kernel[grid](**arguments)
    assert int(arguments["counts"].sum()) == arguments["x"].numel()


class _BadValue(Exception):
    pass


def children() -> set[str]:
    """Return the processes that this one started and that have not ended."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split())


def test_an_error_of_a_program() -> None:
    before = children()

    def interpret(numbers: range) -> int:
        if 100 in numbers:
            raise _BadValue("program 100")
        return len(numbers)

    results = interpret_in_processes(interpret, 200, 3)
    assert [next(results)[1] for _ in range(6)] == [16] * 6
    with pytest.raises(_BadValue, match="program 100"):
        next(results)
    assert children() <= before


SLOW = """
import torch, triton
import triton.language as tl

@triton.jit
def add(x, o, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(x + at) + 1)

x, o = torch.zeros(1 << 22), torch.zeros(1 << 22)
add[(1,)](x, o, BLOCK=64)
print("begins", flush=True)
add[(1 << 16,)](x, o, BLOCK=64)
print("ended")
"""


def check_interrupted(output: Path, last_kernel: int) -> str:
    """Return how the program ended, after a check of what it left."""
    with open_trace(output) as trace:
        verify_trace(trace)
        assert len(trace.kernels) == last_kernel + 1
        assert 0 < trace.kernels[last_kernel].n_blocks < 1 << 16
        assert len(trace.snapshots) == 1
        return trace.provenance.assumptions["end"]


def test_interrupted_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a program is interpreted: those before it are in the file."""
    seen = []

    def interrupted(line: StatusLine, text: str) -> None:
        seen.append(text)
        if len(seen) == 20:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(StatusLine, "show", interrupted)
    x, o = torch.linspace(-1, 1, 5_120), torch.zeros(5_120)
    with pytest.raises(KeyboardInterrupt), capture(tmp_path / "out.bin", snapshots=1):
        square[(40, 2)](x, o, 5_000, BLOCK=64)
    assert "KeyboardInterrupt" in check_interrupted(tmp_path / "out.bin", 0)
    assert torch.equal(o[: 19 * 64], (x * x)[: 19 * 64])
    assert not o[19 * 64 :].any()


@pytest.mark.slow
def test_interrupted(tmp_path: Path) -> None:
    script, output = tmp_path / "slow.py", tmp_path / "out.bin"
    script.write_text(SLOW)
    command = [sys.executable, "-m", "buddysim", "capture", "triton", "-o", str(output), "--snapshots", "1"]
    process = subprocess.Popen(
        [*command, "--workers", "2", "--", sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    time.sleep(0.5)  # the launch takes a minute
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert out == ""
    assert "exit code 130" in check_interrupted(output, 1)
