"""Every number of the Buddy Compression paper is compared; numbers that were not run are marked."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from buddysim.base.validation_table import FILE
from buddysim.papers.buddy.buddy_study import BuddyStudy
from buddysim.papers.paper_comparison import NOT_REPRODUCED, REPRODUCED, SHAPE_ONLY, PaperComparison
from buddysim.papers.reported_values import reported_values
from buddysim.papers.simulated_values import SimulatedValue
from buddysim.replay.version import MODEL_VERSION
from buddysim.sweep.cached_results import SavedResults
from buddysim.sweep.store import Store
from buddysim.synthetic import make_trace
from tests.tools.test_tools import load


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load("validate_buddy")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> BuddyStudy:
    """Return a study of one workload: its trace, and a store with its analyses."""
    folder = tmp_path_factory.mktemp("study")
    for role in ("profile", "replay"):
        sizes = {"footprint": "256 KiB", "op": "copy", "sizes": "32 B:3, 128 B:1"}
        make_trace("stream", folder / f"cg-small-{role}.bin", sizes)
    results = SavedResults(Store.at(folder / "store"))
    paths = {role: str(folder / f"cg-small-{role}.bin") for role in ("profile", "replay")}
    results.result_of("analysis", {"analysis": "ratio", "trace": paths["replay"]})
    results.result_of("analysis", {"analysis": "targets", "trace": paths["replay"], "profile_from": paths["profile"]})
    return BuddyStudy(SavedResults(Store.at(folder / "store")), folder, "small")


@pytest.mark.slow
def test_every_number_has_its_simulated_value_or_was_not_run(tool: ModuleType, study: BuddyStudy) -> None:
    comparisons = tool.compare(study)
    assert [one.reported.id for one in comparisons] == list(reported_values("buddy-paper.md"))
    assert tool.figures(study) == {"scale": "small", "available": "1 of 16 (cg)", "version": MODEL_VERSION}
    by_id = {one.reported.id: one for one in comparisons}
    assert by_id["fig7/354.cg/final_target"].simulated.value == pytest.approx(4.0)
    assert by_id["buddy-cg-per-alloc"].simulated.value == pytest.approx(4.0)
    assert tool.status_of(by_id["fig7/352.ep/final_target"]) == tool.NOT_RUN
    assert tool.status_of(by_id["buddy-final-hpc"]) == tool.NOT_RUN  # a mean of one of ten is none
    assert study.results.simulated <= 64  # trainings alone


@pytest.mark.parametrize(("simulated", "status"), [(1.12, REPRODUCED), (1.5, SHAPE_ONLY), (4.0, NOT_REPRODUCED)])
def test_a_bar_has_the_status_of_its_error(tool: ModuleType, simulated: float, status: str) -> None:
    reported = reported_values()["fig7/354.cg/final_target"]
    assert tool.status_of(PaperComparison(reported, SimulatedValue(simulated))) == status


@pytest.mark.slow
def test_the_tool_stores_the_table_and_the_figures_of_the_text(
    tool: ModuleType, study: BuddyStudy, tmp_path: Path
) -> None:
    assert study.results.store is not None
    arguments = ["--store", str(study.results.store.folder), "--workloads", str(study.folder), "--scale", "small"]
    assert tool.main([*arguments, "-o", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "buddy-paper.json").read_text(encoding="utf-8"))["scale"] == "small"
    with (tmp_path / FILE).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(reported_values("buddy-paper.md"))
    assert {row["page"] for row in rows} == {"buddy-paper"}
    assert Counter(row["status"] for row in rows)["not run"] > 100
    reported = reported_values()["buddy-cg-per-alloc"]
    (ratio,) = [row for row in rows if (row["subject"], row["quantity"]) == (reported.where, reported.what)]
    assert float(ratio["simulated"]) == pytest.approx(4.0)
    assert float(ratio["error_fraction"]) == pytest.approx(4.0 / float(ratio["reference"]) - 1, abs=1e-3)


def test_wrong_store_is_a_one_line_error(tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "STORE").write_text("x")
    with pytest.raises(SystemExit):
        tool.main(["--store", str(tmp_path), "-o", str(tmp_path)])
    assert "not a store of results" in capsys.readouterr().err
    assert not (tmp_path / FILE).exists()
