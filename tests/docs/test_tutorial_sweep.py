"""The sweep tutorial's commands, as a person would type them, in one shell."""

from __future__ import annotations

import csv
import importlib.util
import re
from pathlib import Path

import pytest

from buddysim.sweep.result_rows import read_rows
from buddysim.sweep.store import Store
from tests.docs.notebook_cells import shell_of
from tests.docs.shell import ROOT, typed
from tests.docs.shown import MIN_CHANGE, changes_along

CELLS = shell_of(ROOT / "docs" / "tutorials" / "sweep.md")


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None or importlib.util.find_spec("duckdb") is None,
    reason="needs pip install 'buddysim[sweep]'",
)
def test_the_tutorial(tmp_path: Path) -> None:
    for name in ("docs", "traces"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = typed(CELLS, tmp_path, 600, XDG_CACHE_HOME=str(tmp_path / "cache"))
    store = Store.at(tmp_path / "out" / "tutorial")
    replays = 2 * 3 * (2 + 1 + 1)  # traces, links; thresholds of buddy, then pinned-host and ideal, which have none
    trainings = 4 * 4 * 4 * 4
    links = 2 * (2 * 3 + 1)  # of two studies, each with its baseline
    assert len(store.verified(store.all_keys())) == replays + trainings + links
    assert f"{replays} points: {replays} in the store, 0 to simulate" in done.stderr
    interrupted = re.findall(rf"^{trainings} points: (\d+) in the store, (\d+) to simulate", done.stderr, re.MULTILINE)
    first, estimated, resumed = [(int(stored), int(missing)) for stored, missing in interrupted]
    assert first == (0, trainings)
    # When it was killed, some points were in the store, some weren't.
    assert 50 <= estimated[0] <= resumed[0] < trainings * 0.8
    assert f"{resumed[1]} simulated, 0 failed" in done.stderr
    rows = read_rows(store)
    first_sweep = [row for row in rows if row.get("scheme") == "buddy" and row.get("l2.size") == 4 << 20]
    studies = [row for row in rows if str(row.get("trace")).endswith("jacobi2d.bin")]
    trained = [row for row in rows if row["engine"] == "training"]
    assert len(trained) == trainings
    for varied, axes, quantity in (
        (first_sweep, ["trace", "link.bandwidth", "threshold"], "time_ps"),
        (trained, ["network", "batch", "scheme", "link"], "performance_vs_oracle"),
        (studies, ["l2.size", "link.bandwidth", "scheme"], "time_ps"),
    ):
        for axis in axes:
            assert max(changes_along(varied, axis, axes, quantity)) > MIN_CHANGE, axis
    assert "settings that differ: l2.size" in done.stdout
    assert (tmp_path / "out" / "links.png").stat().st_size > 10_000
    with (tmp_path / "out" / "links.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 6
    with (tmp_path / "out" / "slow.csv").open(newline="") as file:
        assert all(float(row["slowdown_vs_ideal"]) > 1.5 for row in csv.DictReader(file))
