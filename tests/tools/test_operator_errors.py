"""The page of errors of operators, and what ranges of times rest on, are what the tool makes of the shipped rows."""

from __future__ import annotations

import pytest

from tools.operator_errors import pages


@pytest.mark.slow
def test_the_files_are_up_to_date() -> None:
    for path, text in pages().items():
        assert path.read_text(encoding="utf-8") == text, path.name
