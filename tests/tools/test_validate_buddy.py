"""docs/validation/buddy-paper.md has every number of the Buddy Compression paper, and marks numbers that were not
run."""

from __future__ import annotations

import csv
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


def test_document_has_every_number_and_its_simulated_value(tool: ModuleType, study: BuddyStudy) -> None:
    comparisons = tool.compare(study)
    assert [one.reported.id for one in comparisons] == list(reported_values("buddy-paper.md"))
    text = tool.document(comparisons, study)
    for one in comparisons:
        if one.reported.line:
            assert sum(line.startswith(f"| {one.reported.what} | ") for line in text.splitlines()) >= 1, one.reported.id
    assert "Workloads at scale small: 1 of 16 (cg)." in text
    assert f"a store of results of version {MODEL_VERSION} of the model" in " ".join(text.split())
    by_id = {one.reported.id: one for one in comparisons}
    assert by_id["fig7/354.cg/final_target"].simulated.value == pytest.approx(4.0)
    assert by_id["buddy-cg-per-alloc"].simulated.value == pytest.approx(4.0)
    assert tool.status_of(by_id["fig7/352.ep/final_target"]) == tool.NOT_RUN
    assert tool.status_of(by_id["buddy-final-hpc"]) == tool.NOT_RUN  # a mean of one of ten is none
    assert study.results.simulated <= 64  # trainings alone


def test_cells_have_simulated_and_reported_values_and_a_mark(tool: ModuleType) -> None:
    reported = reported_values()["fig7/354.cg/final_target"]
    for simulated, mark, expected in ((1.12, "", REPRODUCED), (1.5, "~", SHAPE_ONLY), (4.0, "!", NOT_REPRODUCED)):
        one = PaperComparison(reported, SimulatedValue(simulated))
        assert tool.status_of(one) == expected
        (heading, _, row) = tool.figure([one])
        assert heading == "| simulated (paper) | final_target |"
        assert row == f"| 354.cg | {simulated:.3g} (1.11){mark} |"
    (_, _, row) = tool.figure([PaperComparison(reported, SimulatedValue(None))])
    assert row == "| 354.cg | not run (1.11) |"


def test_table_and_document_have_the_same_numbers(tool: ModuleType, study: BuddyStudy, tmp_path: Path) -> None:
    document = tmp_path / "buddy-paper.md"
    assert study.results.store is not None
    arguments = ["--store", str(study.results.store.folder), "--workloads", str(study.folder), "--scale", "small"]
    assert tool.main([*arguments, "-o", str(document)]) == 0
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
        tool.main(["--store", str(tmp_path), "-o", str(tmp_path / "d.md")])
    assert "not a store of results" in capsys.readouterr().err
    assert not (tmp_path / "d.md").exists()
