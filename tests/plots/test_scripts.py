"""Every script of plots/ runs from another folder, and writes what it says."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import buddysim
from buddysim.figures import Source, plot

ROOT = Path(__file__).parents[2]
TRACE = ROOT / "traces" / "backprop16k.bin"


def run(script: str, *arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(buddysim.__file__).parents[1])}
    command = [sys.executable, ROOT / "plots" / script, *arguments]
    return subprocess.run(
        [str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_overview_is_the_figure_of_the_same_results(tmp_path: Path) -> None:
    done = run("overview.py", TRACE, "-s", "ideal,buddy", "-o", "script.png", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    results = {scheme: buddysim.simulate(TRACE, scheme=scheme).to_dict() for scheme in ("ideal", "buddy")}
    (tmp_path / "r.json").write_text(json.dumps(results))
    plot("overview", tmp_path / "figure.png", Source(folder=None, file=tmp_path / "r.json"))
    assert (tmp_path / "script.png").read_bytes() == (tmp_path / "figure.png").read_bytes()


def test_link_sweep_has_a_row_for_each_bandwidth(tmp_path: Path) -> None:
    done = run("link_sweep.py", TRACE, "--gb-per-s", 25, 150, "-o", "link.png", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "link.png").stat().st_size > 10_000
    with (tmp_path / "link.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    ideal = buddysim.simulate(TRACE, scheme="ideal").counters["time_ps"]
    host = buddysim.simulate(TRACE, scheme="host").counters["time_ps"]
    assert [row["link_gb_per_s"] for row in rows] == ["25", "150"]
    assert float(rows[0]["host"]) > float(rows[1]["host"]) == host / ideal


def test_training_figures_draws_what_is_asked_for(tmp_path: Path) -> None:
    done = run("training_figures.py", "-o", "pictures", "--suffix", ".svg", "cdma-fig4", "cdma-fig7", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {"cdma-fig4.svg", "cdma-fig7.svg"}


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("overview.py", ["no-such.bin"]),
        ("link_sweep.py", ["no-such.bin", "-o", "p.png"]),
        ("training_figures.py", ["no-such-figure", "-o", "pictures"]),
    ],
)
def test_a_mistake_is_named_in_a_line(script: str, arguments: list[str], tmp_path: Path) -> None:
    done = run(script, *arguments, folder=tmp_path)
    assert done.returncode == 2
    assert "no-such" in done.stderr.splitlines()[-1]


def test_no_script_is_left_out() -> None:
    tested = Path(__file__).read_text(encoding="utf-8")
    for script in (ROOT / "plots").glob("*.py"):
        assert f'run("{script.name}"' in tested
        assert len(script.read_text(encoding="utf-8").splitlines()) <= 60
