"""``validate accelsim``: the stored table is up to date, and each quantity has the right status."""

from __future__ import annotations

import pytest

from buddysim.validation import REGISTRY, ValidationOptions, accelsim
from buddysim.validation.accelsim import ComparedTrace, compared_quantities, path_of_trace
from tests.validation.stored import stored_rows, table_rows


def test_stored_table_is_up_to_date() -> None:
    assert table_rows(REGISTRY.find("accelsim").compare(ValidationOptions()).quantities) == stored_rows("accelsim")


def test_traces_are_bundled() -> None:
    assert path_of_trace("chase.bin") is not None
    assert path_of_trace("bfs-volta.bin") is not None


def test_totals_correlation_and_microbenchmarks_have_tolerances() -> None:
    traces = [
        ComparedTrace("a.bin", "", False, [100, 1000], [110, 1000], {"device_read": (5, 5)}),
        ComparedTrace("b.bin", "", False, [10], [20], {}),
        ComparedTrace("c.bin", "", True, [10, 10, 13], [10, 10, 10], {}),
    ]
    rows = {(row.subject, row.quantity): row for row in compared_quantities(traces)}
    assert rows["a", "cycles"].status == "pass"
    assert rows["b", "cycles"].status == "fail"
    assert rows["c", "cycles"].status == "no tolerance"
    assert rows["a", "DRAM sectors read"].status == "no tolerance"
    assert rows["programs", "mean error"].error == pytest.approx((10 / 1110 + 0.5) / 2)
    assert rows["programs", "log correlation"].status == "fail"
    assert rows["microbenchmarks", "median error"].status == "pass"
    assert rows["microbenchmarks", "largest error"].error == pytest.approx(0.3)


def test_missing_traces_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelsim, "path_of_trace", lambda file: path_of_trace(file) if file == "chase.bin" else None)
    rows = REGISTRY.find("accelsim").compare(ValidationOptions()).quantities
    assert {row.subject for row in rows if row.status == "not checked"} >= {"bfs-volta.bin", "read16.bin"}
    assert {row.subject for row in rows if row.status in ("pass", "fail")} == {"microbenchmarks"}


def test_other_machines_are_not_checked() -> None:
    (row,) = REGISTRY.find("accelsim").compare(ValidationOptions("v100")).quantities
    assert row.status == "not checked"
