"""The comparison with Accel-Sim: errors are within bounds, counts are equal, and the document is up to date."""

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
    assert len(validation.bounded) == 8
    assert abs(validation.sum_error) <= 0.15
    assert abs(validation.worst.error) <= 0.40


def test_imported_counts_and_read_traffic_are_equal(validation):
    bfs, vectoradd = validation.programs
    for program in validation.programs:
        assert all(simulated == reference for simulated, reference in program.imported.values())
    for name in ("device_read", "l2_read", "l2_write"):
        assert len(set(vectoradd.traffic[name])) == 1, name
    simulated, reference = bfs.traffic["device_read"]
    assert simulated == pytest.approx(reference, abs=2)
    simulated, reference = vectoradd.traffic["device_write"]
    assert simulated == pytest.approx(reference, rel=0.15)


def test_document_is_up_to_date(tool, validation):
    stored = tool.DOCUMENT.read_text(encoding="utf-8")
    assert stored == tool.document(validation), "docs/validation/accelsim.md is out of date: run make validate"


def test_check_names_the_command_to_run(tool, validation, monkeypatch, tmp_path: Path, capsys):
    monkeypatch.setattr(tool, "validate", lambda: validation)
    output = tmp_path / "page.md"
    assert tool.main(["--check", "-o", str(output)]) == 1
    assert "run make validate" in capsys.readouterr().out
    assert tool.main(["-o", str(output)]) == 0
    assert tool.main(["--check", "-o", str(output)]) == 0
    assert [file.name for file in tmp_path.iterdir()] == ["page.md"]
    assert tool.main(["-o", str(tmp_path / "missing" / "page.md")]) == 2
