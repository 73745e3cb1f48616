"""The engine against Accel-Sim: within the bounds, counts equal, and the document as the engine is now."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.test_tools import load


@pytest.fixture(scope="module")
def tool():
    return load("validate_accelsim")


@pytest.fixture(scope="module")
def validation(tool):
    return tool.validate()


def test_cycles_are_within_the_bounds(validation):
    assert len(validation.judged) == 8
    assert abs(validation.sum_error) <= 0.15
    assert abs(validation.worst.error) <= 0.40


def test_counts_that_must_be_equal_are(validation):
    bfs, vectoradd = validation.programs
    for program in validation.programs:
        assert all(ours == theirs for ours, theirs in program.imported.values())
    for name in ("device_read", "l2_read", "l2_write"):
        assert len(set(vectoradd.traffic[name])) == 1, name
    ours, theirs = bfs.traffic["device_read"]
    assert ours == pytest.approx(theirs, abs=2)
    ours, theirs = vectoradd.traffic["device_write"]
    assert ours == pytest.approx(theirs, rel=0.15)


def test_the_document_is_what_the_engine_gives_now(tool, validation):
    written = tool.DOCUMENT.read_text(encoding="utf-8")
    assert written == tool.document(validation), "docs/validation-accelsim.md is out of date: run make validate"


def test_check_says_what_to_do(tool, validation, monkeypatch, tmp_path: Path, capsys):
    monkeypatch.setattr(tool, "validate", lambda: validation)
    output = tmp_path / "page.md"
    assert tool.main(["--check", "-o", str(output)]) == 1
    assert "run make validate" in capsys.readouterr().out
    assert tool.main(["-o", str(output)]) == 0
    assert tool.main(["--check", "-o", str(output)]) == 0
    assert [file.name for file in tmp_path.iterdir()] == ["page.md"]
    assert tool.main(["-o", str(tmp_path / "missing" / "page.md")]) == 2
