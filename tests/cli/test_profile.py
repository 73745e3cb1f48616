"""``python -m buddysim profile``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from buddysim.buddy import Targets
from buddysim.cli import main
from tests.buddy.traces import write_trace


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "t.bin"
    known = {"ramp": [1] * 50 + [4] * 14, "noise": [7] * 64}
    write_trace(
        path, {**{name: len(c) for name, c in known.items()}, "unseen": 64, "pinned": 64}, [(0, known)], ["pinned"]
    )
    return path


def test_the_table(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(trace), "--size-distribution", "uniform:64"]) == 0
    out = capsys.readouterr().out
    ramp = next(line for line in out.splitlines() if line.startswith("ramp"))
    assert " ".join(ramp.split()) == "ramp 8.0 KiB 4x - 78.1 - 21.9 - - 21.9 21.9"
    assert "unseen *" in out
    assert "* sizes are sampled from uniform:64" in out
    assert out.startswith("SYNTHETIC SIZES: of 33.3 % of the entries; ratios are ranges over 8 seeds\n")
    assert "threshold 30 %, worst of 1 snapshot, policy final" in out
    assert out.endswith("targets not saved (-o FILE)\n")
    assert "in host memory, without a target: pinned" in out
    assert "ratio {0:.2f}x - {0:.2f}x".format(192 / (64 * 0.25 + 64 + 64 * 0.5)) in out


def test_json_and_the_targets_file(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = trace.parent / "targets.toml"
    assert main(["profile", str(trace), "--threshold", "0.2", "--json", "-", "-o", str(out)]) == 0
    result = json.loads(capsys.readouterr().out)
    targets = {row["name"]: row["target"] for row in result["allocations"]}
    assert (targets["ramp"], targets["noise"]) == ("2x", "1x")
    from buddysim.trace import open_trace

    assert Targets.load(out, open_trace(trace)).to_dict() == targets
    assert sorted(path.name for path in trace.parent.iterdir()) == ["t.bin", "targets.toml"]


def test_only_snapshots_up_to_a_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshots = [(0, {"a": [3] * 64}), (5, {"a": [7] * 64, "late": [3] * 64})]
    write_trace(tmp_path / "t.bin", {"a": 64, "late": 64}, snapshots)
    result = {}
    for until in (None, 4):
        options = [] if until is None else ["--profile-until-launch", str(until)]
        assert main(["profile", str(tmp_path / "t.bin"), "--json", "-", *options]) == 0
        content = json.loads(capsys.readouterr().out)
        assert content["profile_until_launch"] == until
        result[until] = [row["target"] for row in content["allocations"]]
    assert result == {None: ["1x", "4x"], 4: ["4x", "1x"]}
    assert main(["profile", str(tmp_path / "t.bin"), "--profile-until-launch", "4"]) == 0
    shown = capsys.readouterr().out
    assert "worst of 1 snapshot up to launch 4" in " ".join(shown.split())
    assert "no sizes up to launch 4, counted as incompressible: late" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--threshold", "3"], "threshold 3.0: expected a fraction from 0 to 1"),
        (["--threshold", "x"], "argument --threshold: invalid float value: 'x'"),
        (["--policy", "best"], "argument --policy: 'best': expected one of naive"),
        (["--size-distribution", "isca20"], "distribution 'isca20': unknown"),
        (["--seed", "-4"], "seed -4: expected"),
        (
            ["--profile-until-launch", "-1"],
            "profile_until_launch -1: expected a number of launches from 0 on",
        ),
        (["-o", "{trace}"], "is an input"),
        (["-o", "{trace}/x.toml"], "can't be written"),
    ],
)
def test_wrong_options(trace: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    before = trace.read_bytes()
    try:
        code = main(["profile", str(trace), *(option.format(trace=trace) for option in options)])
    except SystemExit as stopped:
        code = stopped.code  # type: ignore[assignment]
    assert code == 2
    error = capsys.readouterr().err
    assert error.startswith("buddysim: error: ")
    assert message in error
    assert error.count("\n") == 1
    assert trace.read_bytes() == before


def test_a_file_that_is_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.bin").write_bytes(b"no trace")
    assert main(["profile", str(tmp_path / "x.bin")]) == 2
    assert "x.bin" in capsys.readouterr().err
