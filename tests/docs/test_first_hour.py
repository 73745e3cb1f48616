"""The commands of the tutorial for the first hour, as a person would type them, in one shell."""

from __future__ import annotations

import csv
import importlib.util
import re
from pathlib import Path

import pytest

from buddysim.sweep.result_rows import read_rows
from buddysim.sweep.store import Store
from tests.capture.opencl.running import needs_opencl
from tests.docs.notebook_cells import shell_of
from tests.docs.shell import ROOT, typed
from tests.docs.shown import MIN_CHANGE, changes_along

TUTORIAL = (ROOT / "docs" / "tutorials" / "first-hour.md").read_text(encoding="utf-8").replace("\\\n", "")
CELLS = shell_of(ROOT / "docs" / "tutorials" / "first-hour.md")
INSTALL = re.findall(r"^```sh install\n(.*?)^```", TUTORIAL, flags=re.MULTILINE | re.DOTALL)


def test_what_is_installed_is_what_the_project_asks_for() -> None:
    """Commands that a test cannot run name the packages and extras of the Makefile and of captures."""
    lines = "".join(INSTALL)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    capture = (ROOT / "docs" / "how-to" / "capture-opencl.md").read_text(encoding="utf-8")
    packages = re.search(r"apt install (pocl-opencl-icd .*)", capture)
    assert packages
    for package in (*packages[1].split(), "python3-venv", "python3-dev", "gcc"):
        assert f" {package}" in lines, package
    assert re.search(r"^run:", makefile, flags=re.MULTILINE)
    assert "make run\n" in lines
    extras = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (needed,) = re.findall(r"'buddysim\[([\w,]+)\]'", lines)
    assert all(f"\n{extra} = [" in extras for extra in needed.split(","))


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None or importlib.util.find_spec("duckdb") is None,
    reason="needs pip install 'buddysim[sweep]'",
)
def test_the_commands(tmp_path: Path) -> None:
    pytest.importorskip("pyopencl")
    needs_opencl()
    done = typed(CELLS, tmp_path, 900)
    assert "24 points: 0 in the store, 24 to simulate" in done.stderr
    assert (tmp_path / "out" / "l2.png").stat().st_size > 10_000
    assert (tmp_path / "out" / "threshold.pdf").stat().st_size > 5_000
    times = {}
    for name in ("l2", "threshold"):
        with (tmp_path / "out" / f"{name}.csv").open(newline="") as file:
            times[name] = [float(row["slowdown_vs_ideal"]) for row in csv.DictReader(file)]
    assert len(times["l2"]) == 6
    assert len(times["threshold"]) == 9
    assert min(times["l2"]) < 1 < max(times["l2"])  # what the text says of them
    rows = [row for row in read_rows(Store.at(tmp_path / "out" / "store")) if row["scheme"] == "buddy"]
    axes = ["link.bandwidth", "l2.size", "threshold"]
    for axis in axes:
        assert max(changes_along(rows, axis, axes, "slowdown_vs_ideal")) > MIN_CHANGE, axis
