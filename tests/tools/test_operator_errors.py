"""Errors of operators: what ranges of times rest on, and the stored row, are what the tool makes of the rows."""

from __future__ import annotations

import pytest

from tests.validation.stored import stored_rows
from tools.operator_errors import PAGE, compared


@pytest.mark.slow
def test_the_files_are_up_to_date() -> None:
    page, files, row = compared()
    for path, text in files.items():
        assert path.read_text(encoding="utf-8") == text, path.name
    assert [["" if cell is None else str(cell) for cell in row]] == stored_rows(PAGE), "python -m tools.operator_errors"
    assert f"Of {row[-1].split()[0]} steps in no fit" in page
