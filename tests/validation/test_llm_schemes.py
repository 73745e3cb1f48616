"""``validate llm``: pairs of trainings that differ by a scheme: rows, settings, errors, stored rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from buddysim.validation import llm
from buddysim.validation.schemes.compared_schemes import ComparedScheme, compared_schemes, ordered_pairs
from buddysim.validation.schemes.measured_schemes import scheme_rows
from buddysim.validation.schemes.scheme_settings import simulated_row
from buddysim.validation.schemes.tolerances import scheme_quantities
from tests.validation.stored import stored_rows, table_rows

STORED = {(row[2], row[3]): row for row in stored_rows("llm")}
ROWS = {row.id: row for row in scheme_rows()}
TORCHTUNE = ROWS["torchtune-flags-005"]


def test_every_pair_is_simulated_or_on_the_page_with_a_reason() -> None:
    for row in ROWS.values():
        assert ((row.id, "slowdown") in STORED) != bool(row.reason)
        assert not row.reason or f"| {row.id} | {row.compared_with or '-'} |" in llm.page_notes()


def test_a_pair_differs_by_its_scheme_alone() -> None:
    for row in ROWS.values():
        if not row.reason:
            one, other = (simulated_row(row.source_set, name) for name in (row.id, row.compared_with))
            assert (one.machine, one.changed, one.config, one.batch) == (
                other.machine, other.changed, other.config, other.batch,
            )  # fmt: skip
            assert one.options["recipe"] == other.options["recipe"]
            assert (one.scheme, one.options) != (other.scheme, other.options)


def test_errors_are_of_the_time_in_addition_above_five_percent_else_differences() -> None:
    large = replace(TORCHTUNE, slowdown=1.2, saved=4.0)
    one = ComparedScheme(large, 1.25, 3.0)
    assert one.slowdown_error == pytest.approx(0.25)
    assert one.saved_error == pytest.approx(-0.25)
    assert ComparedScheme(replace(large, slowdown=1.04), 1.01).slowdown_error == pytest.approx(-0.03)
    bound = replace(large, slowdown=1.07, is_bound=True)
    assert ComparedScheme(bound, 1.02).slowdown_error == 0
    assert ComparedScheme(bound, 1.1).slowdown_error == pytest.approx(0.03)
    assert ComparedScheme(large).slowdown_error is ComparedScheme(large).saved_error is None


def test_a_wrong_order_is_found_where_measured_times_differ() -> None:
    slow, slower = (replace(TORCHTUNE, id=name, slowdown=time) for name, time in (("a", 1.2), ("b", 1.5)))
    right = [ComparedScheme(slow, 1.1, 1.0), ComparedScheme(slower, 1.2, 1.0)]
    assert [one[2] for one in ordered_pairs(right)] == [True, True, True]
    wrong = [ComparedScheme(slow, 1.3, 1.0), ComparedScheme(slower, 1.2, 1.0)]
    assert ("a", "b", False) in [*ordered_pairs(wrong)]
    close = [replace(wrong[0], row=replace(slow, slowdown=1.49)), wrong[1]]
    assert all(one[2] for one in ordered_pairs(close))
    *_, order = scheme_quantities("llm", "a100-80", wrong)
    assert (order.quantity, order.error, order.status) == ("order of variants", pytest.approx(1 / 3), "fail")


def test_the_order_of_variants_is_right_and_bytes_saved_are_within_the_tolerance_but_of_one() -> None:
    assert STORED["schemes", "order of variants"][10] == "pass"
    failed = {name for (name, quantity), row in STORED.items() if quantity == "bytes saved" and row[10] == "fail"}
    assert failed <= {"torchtitan-pr-002"}


@pytest.mark.slow
def test_pairs_are_as_stored() -> None:
    fresh = table_rows(scheme_quantities(llm.NAME, llm.MACHINE, [*compared_schemes(lambda _: None)]))
    assert fresh == [STORED[row[2], row[3]] for row in fresh]
