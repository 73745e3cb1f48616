"""The benchmarks' own arithmetic, and that they run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.measurement import Measurement, Timed, repeated, timed

ROOT = Path(__file__).parents[2]


def test_best_and_median():
    row = Measurement.of_repetitions("x", "M/s", [3.0, 5.0, 4.0], asked=5.0)
    assert (row.best, row.median, row.met) == (5.0, 4.0, True)
    row = Measurement.of_repetitions("x", "MB", [300.0, 500.0, 410.0], asked=250.0, smaller_is_better=True)
    assert (row.best, row.median, row.met) == (300.0, 410.0, False)
    assert Measurement.of_repetitions("x", "s", [1.0]).met is None


@pytest.mark.parametrize(
    ("rates", "seconds_each", "quick", "runs"),
    [
        ([10.0, 9.9, 10.1, 9.8, 10.0, 11.0], 20, False, 5),  # agree at once
        ([5.0, 5.1, 5.0, 5.1, 5.0, 10.0], 20, False, 5),  # so do these, as far as anybody can tell
        ([5.0, 5.1, 5.0, 5.1, 5.0, 5.1, 10.0, 9.9, 9.9, 11.0], 8, False, 9),  # not before a minute has gone by
        ([5.0, 6.0, 10.0, 7.0, 9.9, 5.0, 5.0, 9.8, 11.0], 20, False, 8),  # three runs near the best
        ([5.0, 6.0, 10.0, 7.0, 9.9, 9.8], 20, True, 5),
        ([float(1 << i) for i in range(200)], 20, False, 120),
    ],
)
def test_a_rate_is_measured_for_some_time_and_until_runs_agree(rates, seconds_each, quick, runs):
    given = []
    figures = repeated(
        lambda: given.append(rates[len(given)]) or given[-1], quick, clock=lambda: seconds_each * len(given)
    )
    assert figures == given == rates[:runs]


def test_helping_threads_count_as_time_of_the_core():
    assert Timed(1.0, 1.5).core_s == 1.5
    assert Timed(1.0, 0.5).core_s == 1.0
    given, time = timed(lambda: sum(range(10**6)))
    assert given == 499999500000
    assert 0 < time.processor_s <= time.core_s


@pytest.mark.slow
def test_every_benchmark_runs(tmp_path):
    command = [sys.executable, "-m", "benchmarks", "--quick", "--json", str(tmp_path / "out.json")]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert "BPC sizes" in run.stdout
    content = json.loads((tmp_path / "out.json").read_text())
    assert len(content["measurements"]) > 10
    assert all(row["best"] > 0 for row in content["measurements"])
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
