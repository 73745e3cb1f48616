"""A workload of a user: the trace of the example plug-in, whose kernel has operations of different widths."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import buddysim.trace as bt
from buddysim.cli import main

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "docs" / "examples" / "plugins" / "transpose.py"


def make(folder: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    options = [option for setting in settings for option in ("--set", setting)]
    return subprocess.run(
        [sys.executable, "-m", "buddysim", "generate", "transpose", "--plugin", str(PLUGIN), "-o", "t.bin", *options],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_its_trace_transposes_every_word_once(tmp_path: Path) -> None:
    done = make(tmp_path, "n=64")
    assert done.returncode == 0, done.stderr
    with bt.open_trace(tmp_path / "t.bin") as trace:
        bt.verify_trace(trace)
        (kernel,) = trace.kernels
        chunks = [trace.decode_chunk(ref) for ref in kernel.chunks]
        matrix, transposed = (allocation.base // 128 for allocation in trace.allocations)
        command = trace.provenance.command
    assert command == "python -m buddysim generate transpose --plugin transpose.py --set n=64"
    read: list[int] = []
    written: dict[int, int] = {}
    for chunk in chunks:
        for op in chunk.ops:
            lines = chunk.lines[int(op["first_line"]) :][: int(op["n_lines"])]
            numbers, masks = (lines >> np.uint64(8)).tolist(), (lines & np.uint64(0xFF)).tolist()
            if op["kind"] == bt.OP_LOAD:
                read += numbers
                assert masks == [0xF]
            else:
                assert op["kind"] == bt.OP_STORE
                assert len(set(numbers)) == 32
                for number, mask in zip(numbers, masks, strict=True):
                    assert mask in (1, 2, 4, 8), "part of one sector"
                    written[number] = written.get(number, 0) | mask
    lines_of_matrix = 64 * 64 * 4 // 128
    assert sorted(read) == [matrix + line for line in range(lines_of_matrix)]
    assert written == {transposed + line: 0xF for line in range(lines_of_matrix)}


def test_its_parameters_are_checked_as_those_of_any_workload(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for setting, problem in (("n=33", "n: 33 is not a multiple of 32"), ("m=64", "'m': unknown parameter")):
        command = ["generate", "transpose", "--plugin", str(PLUGIN), "-o", str(tmp_path / "t.bin"), "--set", setting]
        assert main(command) == 2
        shown = capsys.readouterr().err
        assert problem in shown
        assert len(shown.splitlines()) == 1
        assert not (tmp_path / "t.bin").exists()
