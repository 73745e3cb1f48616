"""The runs with gaps halved and doubled."""

from __future__ import annotations

import threading
from fractions import Fraction

import pytest

from buddysim.replay.result import ReplayResult
from buddysim.replay.sensitivity import with_gap_sensitivity


def result(scheme, time_ps):
    counters = {"time_ps": time_ps, "memory_instructions": 10}
    return ReplayResult(scheme, counters, [], [], {}, {"assumptions": {}})


def test_each_scheme_runs_with_half_and_double_gaps():
    asked = []

    def run_one(scheme, gap_scale, progress):
        asked.append((scheme, gap_scale))
        progress(10, 10)
        return result(scheme, int(100 * gap_scale))

    reports = []
    given = {"buddy": result("buddy", 100), "ideal": result("ideal", 90)}
    completed = with_gap_sensitivity(given, run_one, lambda done, total: reports.append((done, total)))
    assert sorted(asked) == [(s, f) for s in ("buddy", "ideal") for f in (Fraction(1, 2), Fraction(2))]
    assert completed["buddy"].sensitivity == {"half_gaps_time_ps": 50, "double_gaps_time_ps": 200}
    assert completed["ideal"].counters == given["ideal"].counters
    assert reports[-1] == (40, 40)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_in_one_run_ends_the_others(error):
    """The other run ends only because it is stopped."""
    other_runs = threading.Event()

    def run_one(scheme, gap_scale, progress):
        if gap_scale == 2:
            other_runs.wait(10)
            raise error
        while True:
            other_runs.set()
            progress(1, 10)

    with pytest.raises(error):
        with_gap_sensitivity({"buddy": result("buddy", 100)}, run_one)
