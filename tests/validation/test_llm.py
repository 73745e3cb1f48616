"""``validate llm``: the settings of measured rows, the stored rows."""

from __future__ import annotations

import pytest

from buddysim.validation import ValidationOptions, llm
from buddysim.validation.memory.compared_rows import compared_layers, compared_trainings
from buddysim.validation.memory.measured_rows import training_rows
from buddysim.validation.memory.training_settings import TrainingSettings, settings_of
from tests.validation.stored import TABLE, stored_rows, table_rows

POINTS = (TABLE.parent / "llm.csv").read_text(encoding="utf-8")
STORED = {(row[2], row[3]): row for row in stored_rows("llm")}


def of(name: str) -> TrainingSettings:
    (row,) = [row for row in training_rows() if row.id == name]
    settings = settings_of(row)
    assert isinstance(settings, TrainingSettings)
    return settings


def test_rows_of_a_source_differ_by_their_flags_alone() -> None:
    packed, compiled, parts = (of(f"torchtune-flags-00{number}") for number in (2, 3, 4))
    assert compiled.options == {**packed.options, "compile": True}
    assert parts.options == {**compiled.options, "loss": "chunked:8"}
    assert of("torchtune-flags-007").offloads
    assert not of("torchtune-flags-006").offloads
    assert of("torchtune-flags-010").options["qlora"]


def test_every_usable_row_is_simulated_and_every_row_is_stored() -> None:
    for row in training_rows():
        assert f"\n{row.id}," in POINTS, row.id
        assert isinstance(settings_of(row), TrainingSettings) or not row.is_usable


def test_all_usable_rows_but_one_are_within_five_percent() -> None:
    failed = {subject for (subject, quantity), row in STORED.items() if row[10] == "fail" and quantity == "peak memory"}
    assert failed == {"torchtune-flags-010"}
    assert float(STORED["usable rows", "median error"][8]) < 0.02
    assert float(STORED["layers", "median error"][8]) < 0.001


def test_a_row_is_as_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for row in training_rows() if row.id == "torchtune-flags-002"]
    monkeypatch.setattr("buddysim.validation.memory.compared_rows.training_rows", lambda: rows)
    (fresh,) = compared_trainings(lambda _: None)
    assert fresh.simulated == pytest.approx(float(STORED["torchtune-flags-002", "peak memory"][5]), rel=1e-4)


@pytest.mark.slow
def test_layers_are_as_stored() -> None:
    fresh = table_rows(llm.layer_quantities([*compared_layers(lambda _: None)]))
    assert fresh == [STORED[row[2], row[3]] for row in fresh]


def test_other_machines_are_not_checked() -> None:
    (row,) = llm.compare(ValidationOptions("v100")).quantities
    assert row.status == "not checked"
