"""``traces``: the traces of the repository and their paths."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from buddysim.cli import main
from buddysim.trace import shipped

TRACES = Path(__file__).parents[2] / "traces"


def test_every_trace_of_the_manifest_is_listed_and_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["traces", "--json", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {f"{trace['name']}.bin" for trace in listed} == {path.name for path in TRACES.glob("*.bin")}
    for trace in listed:
        data = Path(trace["path"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (trace["bytes"], trace["sha256"])
    assert main(["traces"]) == 0
    shown = capsys.readouterr().out
    shown = " ".join(shown.split())
    assert all(trace["name"] in shown and trace["about"] in shown for trace in listed)


def test_one_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["traces", "bitonic-sort.bin"]) == 0
    assert "capture opencl" in capsys.readouterr().out
    assert main(["traces", "bitonic-sort", "--path"]) == 0
    assert Path(capsys.readouterr().out.strip()) == TRACES / "bitonic-sort.bin"


def test_a_command_takes_a_traces_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["verify", "lud256"]) == 0
    assert main(["sweep", "lud256", "--scheme", "ideal", "--dry-run", "--store", "s"]) == 0
    assert main(["run", "lud255"]) == 2
    assert "'lud255': no such file, and no trace of this name (nearest: lud256)" in capsys.readouterr().err
    Path("lud256").write_text("another file")
    assert main(["verify", "lud256"]) == 2
    assert "lud256: " in capsys.readouterr().err
    Path("lud256").unlink()
    (tmp_path / "MANIFEST.toml").write_text((TRACES / "MANIFEST.toml").read_text())
    monkeypatch.setattr(shipped, "FOLDERS", (tmp_path,))
    assert main(["run", "lud256"]) == 2
    assert "lud256: this installation lacks it: 'buddysim traces lud256'" in capsys.readouterr().err


def test_a_trace_that_is_not_here_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "MANIFEST.toml").write_text((TRACES / "MANIFEST.toml").read_text())
    monkeypatch.setattr(shipped, "FOLDERS", (tmp_path,))
    assert main(["traces", "lud256", "--path"]) == 2
    assert "traces/ of buddysim's repository" in capsys.readouterr().err
    assert main(["traces"]) == 0
    assert "not here" in capsys.readouterr().out
    assert main(["traces", "lud25"]) == 2
    assert "lud256" in capsys.readouterr().err
