"""`buddysim calibrate`, and `train` with its result."""

from __future__ import annotations

from pathlib import Path

import pytest

from buddysim.cli import main
from buddysim.training.cost import CostModel
from tools.layer_times.shipped_fit import DATA_FOLDER

TIMINGS = str(DATA_FOLDER / "calibration" / "v100-cudnn7.csv")


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    try:
        code = main(argv)
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_another_gpu(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    output = tmp_path / "mine.toml"
    code, out, err = run(capsys, "calibrate", TIMINGS, "--machine", "a100-40", "--library", "cudnn8", "-o", str(output))
    assert (code, err) == (0, "")
    assert "timings of 42 shapes on a100-40" in out
    assert "held-out shapes, fitted without them" in out
    model = CostModel.load("a100-40", calibration=output)
    assert (model.calibrated, model.library) == (True, "cudnn8")
    assert "v100-cudnn7.csv" in model.source
    scheme = ("train", "alexnet", "--batch", "32", "--machine", "a100-40", "--scheme", "oracle")
    code, plain, _ = run(capsys, *scheme)
    assert code == 0
    assert "times of operators fitted to timings" in " ".join(plain.split())
    code, own, _ = run(capsys, *scheme, "--calibration", str(output))
    assert code == 0
    assert "fitted by buddysim calibrate" in " ".join(own.split())
    assert own != plain


def test_errors_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    output = str(tmp_path / "mine.toml")
    bad = tmp_path / "bad.csv"
    bad.write_text("kind,batch,in_channels,pass,ms\nrelu,1,1,forward,0.5\nrelu,1,1,forward,x\n")
    unfit = tmp_path / "unfit.csv"
    unfit.write_text("kind,batch,in_channels,pass,ms\nrelu,1,1,forward,0.5\n")
    for arguments, problem in [
        ((str(bad), "--machine", "m40"), "bad.csv: row 3: ms: expected a number, got 'x'"),
        ((str(unfit), "--machine", "m40"), "no timing of a conv or fc layer"),
        ((TIMINGS, "--machine", "m400"), "(nearest: m40)"),
        ((TIMINGS, "--machine", "m40", "--library", "mkl"), "--library: 'mkl': not a version of cuDNN"),
        ((str(tmp_path / "absent.csv"), "--machine", "m40"), "can't read the file of timings"),
    ]:
        code, out, err = run(capsys, "calibrate", *arguments, "-o", output)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert problem in err
    code, out, err = run(capsys, "calibrate", TIMINGS, "--machine", "m40", "-o", str(tmp_path / "no" / "x.toml"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    code, out, err = run(capsys, "train", "alexnet", "--calibration", str(bad))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "not valid TOML" in err
    assert not Path(output).exists()
