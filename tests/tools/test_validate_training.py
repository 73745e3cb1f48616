"""Every number of the papers on training is compared with the simulated one, and stored results are up to date."""

from __future__ import annotations

import csv
import json
from types import ModuleType

import pytest

from buddysim.papers.paper_comparison import (
    CONTRADICTED,
    NOT_REPRODUCED,
    TOLERANCE,
    UNPUBLISHED_WORKSPACE,
    PaperComparison,
)
from buddysim.sweep.cached_results import SavedResults
from tests.tools.test_tools import load
from tests.validation.stored import TABLE

#: All numbers of the papers on training: a minute.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load("validate_training")


@pytest.fixture(scope="module")
def training() -> SavedResults:
    return SavedResults()


@pytest.fixture(scope="module")
def comparisons(tool: ModuleType, training: SavedResults) -> list[PaperComparison]:
    pytest.importorskip("lz4.block", reason="codecs are compared, LZ4 among them: needs the LZ4 library")
    return list(tool.compare(training))


def test_memory_without_unpublished_workspace_is_within_seven_per_cent(comparisons: list[PaperComparison]) -> None:
    checked = [one for one in comparisons if one.reported.rule == "memory" and not one.reported.workspace]
    assert len(checked) >= 6
    for one in checked:
        reported, simulated = one.reported.value, one.simulated.value
        if isinstance(reported, tuple) and isinstance(simulated, tuple):
            pairs = list(zip(reported, simulated, strict=True))
        else:
            assert isinstance(reported, float)
            assert isinstance(simulated, float)
            pairs = [(reported, simulated)]
        assert all(abs(value / reference - 1) <= TOLERANCE for reference, value in pairs), one


def test_max_five_numbers_are_not_reproduced_and_each_has_a_cause(comparisons: list[PaperComparison]) -> None:
    failed = [one for one in comparisons if one.status == NOT_REPRODUCED]
    gist = [one for one in failed if one.reported.where.startswith("Gist")]
    cswap = [one for one in failed if one.reported.where.startswith("CSWAP")]
    assert len(failed) - len(gist) - len(cswap) <= 5, [one.reported.id for one in failed]
    assert sum(not one.reported.needs for one in cswap) <= 3, [one.reported.id for one in cswap]
    published = [one.reported.id for one in gist if not one.reported.needs]
    assert len(published) <= 3, published
    for one in failed:
        assert any(character.isdigit() for character in one.simulated.cause), one


def test_only_numbers_with_workspace_or_contradictions_are_inconclusive(comparisons: list[PaperComparison]) -> None:
    for one in comparisons:
        if one.status == UNPUBLISHED_WORKSPACE:
            assert one.reported.workspace
            assert one.simulated.note
        if one.status == CONTRADICTED:
            assert one.reported.contradicted


def test_stored_table_and_figures_are_up_to_date(
    tool: ModuleType, comparisons: list[PaperComparison], training: SavedResults
) -> None:
    fresh = [["" if cell is None else str(cell) for cell in one.row] for one in comparisons]
    with TABLE.open(encoding="utf-8", newline="") as file:
        stored = [row[:-1] for row in csv.reader(file) if row[-1] == tool.PAGE]
    assert sorted(stored) == sorted(fresh), "out of date: run make validate"
    figures = json.loads((TABLE.parent / f"{tool.PAGE}.json").read_text(encoding="utf-8"))
    assert figures == tool.figures(training), "out of date: run make validate"
