"""``make``."""

from __future__ import annotations

import pytest

import buddysim.trace as bt
from buddysim.cli import main


def test_lists_workloads_and_their_parameters(capsys):
    assert main(["generate"]) == 0
    assert "stream" in capsys.readouterr().out
    assert main(["generate", "stream"]) == 0
    shown = capsys.readouterr().out
    assert "footprint" in shown
    assert "64 MiB" in shown


def test_writes_the_trace(tmp_path, capsys):
    path = tmp_path / "t.bin"
    assert main(["generate", "stream", "-o", str(path), "--set", "footprint=64KiB", "--set", "laps=2"]) == 0
    assert capsys.readouterr().out == ""
    with bt.open_trace(path) as trace:
        assert [kernel.memory_instructions for kernel in trace.kernels] == [512, 512]
        assert trace.provenance.command == "python -m buddysim generate stream --set 'footprint=64 KiB' --set laps=2"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["generate", "strem", "-o", "x"], "nearest: stream"),
        (["generate", "stream", "-o", "x", "--set", "lap=2"], "nearest: laps"),
        (["generate", "stream", "-o", "x", "--set", "laps"], "expected KEY=VALUE"),
        (["generate", "stream", "--set", "laps=2"], "expected -o FILE"),
        (["generate", "-o", "x"], "no workload named"),
        (["generate", "stream", "-o", "missing/x"], "missing/x"),
    ],
)
def test_mistakes(tmp_path, monkeypatch, capsys, arguments, problem):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())
