"""``python -m buddysim analyse``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from buddysim.cli import main
from tests.buddy.traces import write_trace


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "t.bin"
    write_trace(path, {"a": 64}, [(0, {"a": [3] * 64}), (7, {"a": [4] * 64})], as_size_maps=True)
    return path


def test_tables_on_the_screen(trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["analyse", str(trace), "--only", "ratio,threshold"]) == 0
    out = capsys.readouterr().out
    assert "t.bin, ratio" in out
    assert "geometric mean over the snapshots: bpc 2.83" in out  # of 4 and 2
    assert "…" not in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_each_part_of_a_wide_table_names_its_rows(
    trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compressor alone distinguishes no rows, as it is the same in all of them."""
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["analyse", str(trace), "--only", "classes"]) == 0
    headings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("compressor")]
    assert len(headings) > 1
    assert all(heading.split()[:2] == ["compressor", "allocation"] for heading in headings)


def test_csv_and_json(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, result = trace.parent / "found", trace.parent / "r.json"
    assert main(["analyse", str(trace), "--only", "ratio", "-o", str(folder), "--json", str(result)]) == 0
    assert f"written: {folder / 't-ratio.csv'}" in capsys.readouterr().out
    with (folder / "t-ratio.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["ratio"] for row in rows] == ["4.0", "2.0"]
    assert [row["ratio"] for row in json.loads(result.read_text())[str(trace)]["ratio"]["rows"]] == [4.0, 2.0]


def test_of_all_analyses_those_that_a_trace_lacks_the_values_for_are_left_out(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = trace.parent / "found"
    assert main(["analyse", str(trace), "-o", str(folder)]) == 0
    assert "left out: launches: " in capsys.readouterr().err
    assert {"t-ratio.csv", "t-threshold.csv"} <= {path.name for path in folder.iterdir()}
    assert not (folder / "t-launches.csv").exists()
    assert main(["analyse", str(trace), "--only", "ratio,launches"]) == 2


def test_traces_of_one_name_have_files_of_their_own(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = trace.parent / "other" / "t.bin"
    other.parent.mkdir()
    write_trace(other, {"a": 64}, [(0, {"a": [7] * 64})], as_size_maps=True)
    folder = trace.parent / "found"
    assert main(["analyse", str(trace), str(other), "--only", "ratio", "-o", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["t-2-ratio.csv", "t-ratio.csv"]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--only", "ratoi"], "nearest: ratio"),
        (["--compressor", "bpcc"], "nearest: bpc"),
        (["--threshold", "2"], "expected a fraction from 0 to 1"),
        (["--machine", "p100"], "p100-nvlink2"),
        (["--json", "no/such/folder/r.json"], "there is no folder"),
    ],
)
def test_one_line_says_what_is_wrong(
    trace: Path, arguments: list[str], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyse", str(trace), *arguments]) == 2
    output = capsys.readouterr()
    assert shown in output.err
    assert len(output.err.splitlines()) == 1
