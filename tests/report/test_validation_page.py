"""Pages of comparisons are made from the table alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.base.validation_table import FILE, merged
from buddysim.report.validation_page import amount, comparison_page, percent
from buddysim.validation import REGISTRY, ComparedQuantity


def test_a_page_has_texts_counts_and_every_quantity_of_its_comparisons(tmp_path: Path) -> None:
    table = tmp_path / FILE
    curves = [
        ComparedQuantity("curves", "v100", "a curve", "median error", error=0.04, tolerance=0.05),
        ComparedQuantity("curves", "v100", "another", "L2 capacity", "KiB", 6000, 4000, 0.5, 0.15, "late"),
    ]
    kernels = [ComparedQuantity("kernels", "gv100", "a kernel", "cycles", "", 1234567, 1e6, 0.2346)]
    table.write_text(merged(table, "hardware", {"kernels": [one.row for one in kernels]}))
    table.write_text(merged(table, "hardware", {"curves": [one.row for one in curves]}))
    text = comparison_page(table, "hardware")
    assert text.startswith("# Real GPUs: curves and kernels\n")
    assert text.index("## Curves") < text.index("1 of 2 quantities are within") < text.index("## Kernels")
    assert "| a curve | median error | - | - | 4.0 % | 5.0 % | - |" in text
    assert "| another | L2 capacity | 6,000 KiB | 4,000 KiB | **50.0 %** | 15.0 % | late |" in text
    assert "| a kernel | cycles | 1,234,600 | 1,000,000 | 23.5 % | - | - |" in text
    assert comparison_page(table, "mine").startswith("# mine\n")


def test_numbers_have_units_and_texts_stay() -> None:
    assert [amount("0.5", "x"), amount("1, 7", "%"), amount("", "B")] == ["0.5 x", "1, 7 %", "-"]
    assert [percent("-0.0125"), percent("")] == ["-1.2 %", "-"]


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("a,b\n")
    with pytest.raises(BuddysimError, match="not a table of comparisons"):
        comparison_page(tmp_path / FILE, "hardware")


def test_every_comparison_has_a_text() -> None:
    for _, comparison in REGISTRY.items():
        assert comparison.PAGE_HEAD.strip().startswith("## ")
        assert comparison.page_notes().strip()
