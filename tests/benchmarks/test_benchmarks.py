"""Every benchmark runs, and its statistics equal values computed by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.instructions import counted, plot
from benchmarks.measurement import Measurement, Timed, repeated, timed

ROOT = Path(__file__).parents[2]


def test_measurement_has_best_median_and_status():
    row = Measurement.of_repetitions("x", "M/s", [3.0, 5.0, 4.0], required=5.0)
    assert (row.best, row.median, row.passes) == (5.0, 4.0, True)
    row = Measurement.of_repetitions("x", "MB", [300.0, 500.0, 410.0], required=250.0, smaller_is_better=True)
    assert (row.best, row.median, row.passes) == (300.0, 410.0, False)
    assert Measurement.of_repetitions("x", "s", [1.0]).passes is None


@pytest.mark.parametrize(
    ("rates", "seconds_each", "quick", "runs"),
    [
        ([10.0, 9.9, 10.1, 9.8, 10.0, 11.0], 20, False, 5),  # agree at once
        ([5.0, 5.1, 5.0, 5.1, 5.0, 10.0], 20, False, 5),  # these agree, too
        ([5.0, 5.1, 5.0, 5.1, 5.0, 5.1, 10.0, 9.9, 9.9, 11.0], 8, False, 9),  # not before a minute has passed
        ([5.0, 6.0, 10.0, 7.0, 9.9, 5.0, 5.0, 9.8, 11.0], 20, False, 8),  # three runs near the best
        ([5.0, 6.0, 10.0, 7.0, 9.9, 9.8], 20, True, 5),
        ([float(1 << i) for i in range(200)], 20, False, 120),
    ],
)
def test_rate_is_measured_until_runs_agree(rates, seconds_each, quick, runs):
    returned = []
    figures = repeated(
        lambda: returned.append(rates[len(returned)]) or returned[-1], quick, clock=lambda: seconds_each * len(returned)
    )
    assert figures == returned == rates[:runs]


def test_core_time_includes_helping_threads():
    assert Timed(1.0, 1.5).core_s == 1.5
    assert Timed(1.0, 0.5).core_s == 1.0
    returned, time = timed(lambda: sum(range(10**6)))
    assert returned == 499999500000
    assert 0 < time.processor_s <= time.core_s


def test_stored_counts_of_instructions_are_plotted(tmp_path):
    plot(tmp_path / "instructions.png")
    assert (tmp_path / "instructions.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is missing")
def test_error_of_a_counted_benchmark_is_shown(tmp_path):
    with pytest.raises(SystemExit, match="KeyError: 'absent'"):
        counted("absent", tmp_path)


@pytest.mark.slow
@pytest.mark.long
def test_every_benchmark_runs(tmp_path):
    command = [sys.executable, "-m", "benchmarks", "--quick", "--json", str(tmp_path / "out.json")]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert "BPC sizes" in run.stdout
    content = json.loads((tmp_path / "out.json").read_text())
    assert len(content["measurements"]) > 10
    assert all(row["best"] > 0 for row in content["measurements"])
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
