"""``validate accelsim``: as the stored table has it, and what is quantities."""

from __future__ import annotations

import pytest

from buddysim.validation import REGISTRY, ValidationOptions, accelsim
from buddysim.validation.accelsim import ComparedTrace, compared_quantities, trace_of
from tests.validation.stored import fresh, stored


def test_the_table_is_up_to_date() -> None:
    assert fresh(REGISTRY.find("accelsim").compare(ValidationOptions()).quantities) == stored("accelsim")


def test_the_traces_come_along() -> None:
    assert trace_of("chase.bin") is not None
    assert trace_of("bfs-volta.bin") is not None


def test_totals_correlation_and_microbenchmarks_are_judged() -> None:
    found = [
        ComparedTrace("a.bin", "", False, [100, 1000], [110, 1000], {"device_read": (5, 5)}),
        ComparedTrace("b.bin", "", False, [10], [20], {}),
        ComparedTrace("c.bin", "", True, [10, 10, 13], [10, 10, 10], {}),
    ]
    rows = {(row.subject, row.quantity): row for row in compared_quantities(found)}
    assert rows["a", "cycles of all kernels"].status == "pass"
    assert rows["b", "cycles of all kernels"].status == "fail"
    assert rows["c", "cycles of all kernels"].status == "no tolerance"
    assert rows["programs", "mean error of totals"].error == pytest.approx((10 / 1110 + 0.5) / 2)
    assert rows["programs", "log correlation of kernels"].status == "fail"
    assert rows["microbenchmarks", "median error"].status == "pass"
    assert rows["microbenchmarks", "largest error"].error == pytest.approx(0.3)


def test_what_an_installation_lacks_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelsim, "trace_of", lambda file: trace_of(file) if file == "chase.bin" else None)
    rows = REGISTRY.find("accelsim").compare(ValidationOptions()).quantities
    assert {row.subject for row in rows if row.status == "not checked"} >= {"bfs-volta.bin", "read16.bin"}
    assert {row.subject for row in rows if row.status == "pass" or row.status == "fail"} == {"microbenchmarks"}


def test_another_machine_is_not_checked() -> None:
    (row,) = REGISTRY.find("accelsim").compare(ValidationOptions("v100")).quantities
    assert row.status == "not checked"
