"""A run keeps each test's processor time, processes with it, and fails in CI where a quick test takes too much."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import processor_time

TESTS = """
import subprocess, sys, time
import pytest

SPIN = "import time\\nwhile time.process_time() < 0.4: pass"

@pytest.fixture
def shared():
    end = time.process_time() + 0.4
    while time.process_time() < end: pass

def test_short(shared): ...

def test_child():
    subprocess.run([sys.executable, "-c", SPIN], check=True)

@pytest.mark.slow
def test_slow():
    end = time.process_time() + 0.4
    while time.process_time() < end: pass
"""


@pytest.mark.slow
def test_a_long_quick_test_fails_the_run_in_ci(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    hooks = "config.pluginmanager.register(processor_time.ProcessorTime(config))"
    lines = ["from tests import processor_time", "processor_time.MAX_QUICK_S = 0.3", "def pytest_configure(config):"]
    (tmp_path / "conftest.py").write_text("\n".join([*lines, f"    {hooks}\n"]))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:hypothesispytest"],
        env={**os.environ, "LIMIT_QUICK_TESTS": "1", "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert "3 passed" in done.stdout, done
    assert done.returncode == 1
    assert [line.split(": ")[0] for line in done.stdout.splitlines() if "of processor time" in line] == [
        "test_it.py::test_child"
    ]
    stored = json.loads((tmp_path / ".pytest_cache" / "v" / processor_time.KEY).read_text())
    assert stored.keys() == {"test_it.py::test_short", "test_it.py::test_child", "test_it.py::test_slow (slow)"}
    assert min(stored["test_it.py::test_child"], stored["test_it.py::test_short"]) >= 0.3
    assert stored["test_it.py::test_slow (slow)"] >= 0.3


tried = {100: 0, 30: 0, 20: 0}


@given(st.floats())
@settings(max_examples=100)
def test_of_100_examples(number: float) -> None:
    tried[100] += 1


@given(st.floats())
@settings(max_examples=30)
def test_of_30_examples(number: float) -> None:
    tried[30] += 1


@given(st.floats())
@settings(max_examples=20)
def test_of_20_examples(number: float) -> None:
    tried[20] += 1


def test_quick_runs_try_fewer_examples(request: pytest.FixtureRequest) -> None:
    quick = request.config.option.markexpr == "not slow"
    for number, function in ((100, test_of_100_examples), (30, test_of_30_examples), (20, test_of_20_examples)):
        tried[number] = 0
        function()
    assert tried == ({100: 40, 30: 25, 20: 20} if quick else {100: 100, 30: 30, 20: 20})
