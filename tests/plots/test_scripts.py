"""Every script of plots/ runs from another folder, and writes the files that it names."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import buddysim
from buddysim.cli import main
from buddysim.figures import ResultSource, plot

ROOT = Path(__file__).parents[2]
TRACE = ROOT / "traces" / "backprop16k.bin"


def run(script: str, *arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(buddysim.__file__).parents[1])}
    command = [sys.executable, ROOT / "plots" / script, *arguments]
    return subprocess.run(
        [str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_overview_is_the_figure_of_the_same_results(tmp_path: Path) -> None:
    done = run("overview.py", TRACE, "-s", "ideal,buddy", "-o", "script.png", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    results = {scheme: buddysim.simulate(TRACE, scheme=scheme).to_dict() for scheme in ("ideal", "buddy")}
    (tmp_path / "r.json").write_text(json.dumps(results))
    plot("overview", tmp_path / "figure.png", ResultSource(file=tmp_path / "r.json"))
    assert (tmp_path / "script.png").read_bytes() == (tmp_path / "figure.png").read_bytes()


@pytest.mark.slow
def test_the_link_study_has_a_row_for_each_bandwidth(tmp_path: Path) -> None:
    study = (ROOT / "plots" / "link.toml").read_text().replace("../traces/kv-cache.bin", str(TRACE))
    (tmp_path / "link.toml").write_text(study)
    columns = ["--x", "link.bandwidth", "--y", "slowdown_vs_ideal", "--by", "scheme"]
    folder = ["-o", str(tmp_path / "link.png"), "--store", str(tmp_path / "store")]
    assert main(["plot", "sweep", str(tmp_path / "link.toml"), *columns, *folder]) == 0
    assert (tmp_path / "link.png").stat().st_size > 10_000
    with (tmp_path / "link.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    ideal = buddysim.simulate(TRACE, scheme="ideal").counters["time_ps"]
    scheme = "pinned-host"
    host = buddysim.simulate(TRACE, scheme=scheme).counters["time_ps"]
    times = {
        float(row["link.bandwidth"]): float(row["slowdown_vs_ideal"]) for row in rows if row["scheme"] == "pinned-host"
    }
    assert list(times) == [25e9, 50e9, 100e9, 150e9, 200e9]
    assert times[25e9] > times[150e9] == host / ideal


@pytest.mark.slow
def test_training_figures_draws_the_requested_figures(tmp_path: Path) -> None:
    done = run("training_figures.py", "-o", "figures", "--suffix", ".svg", "cdma-fig4", "cdma-fig7", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"cdma-fig4.svg", "cdma-fig7.svg"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("overview.py", ["no-such.bin"]),
        ("training_figures.py", ["no-such-figure", "-o", "figures"]),
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
