"""Which columns tell results apart."""

from __future__ import annotations

import pytest

from buddysim.sweep.distinguishing_columns import distinguishing_columns

pyarrow = pytest.importorskip("pyarrow")


def test_a_machine_s_figures_count_where_they_differ_within_one_machine():
    rows = [
        {"name": "a", "machine": "v100", "l2.ways": "24", "dram.channels": "32"},
        {"name": "b", "machine": "a100-40", "l2.ways": "16", "dram.channels": "40"},
        {"name": "c", "machine": "a100-40", "l2.ways": "32", "dram.channels": "40"},
    ]
    assert distinguishing_columns(pyarrow.Table.from_pylist(rows), ()) == ["name", "machine", "l2.ways"]


def test_results_that_name_no_machine_are_told_apart_too():
    """As damaged ones; figures of machines then count where any differ."""
    rows = [{"name": "a", "l2.ways": "24"}, {"name": "b", "l2.ways": "16"}]
    assert distinguishing_columns(pyarrow.Table.from_pylist(rows), ()) == ["name", "l2.ways"]
