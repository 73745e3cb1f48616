"""Errors of layer times: the stored rows are what the tool computes."""

from __future__ import annotations

from tests.validation.stored import stored_rows
from tools.cost_errors import PAGE
from tools.cost_errors import stored_rows as fresh_rows


def test_stored_rows_are_up_to_date() -> None:
    fresh = [["" if cell is None else str(cell) for cell in row] for row in fresh_rows()]
    assert fresh == stored_rows(PAGE), "run: python -m tools.cost_errors"
    assert fresh[-1][2] == "all held-out CONV timings"
