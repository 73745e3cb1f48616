"""docs/cost-model-errors.md is what the tool would write."""

from __future__ import annotations

from tools.cost_errors import DOCUMENT, text


def test_the_page_is_current() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == text()
