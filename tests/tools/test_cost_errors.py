"""docs/validation/layer-times.md equals the tool's output."""

from __future__ import annotations

import pytest

from tests.tools.test_tools import load


@pytest.mark.slow
def test_page_is_up_to_date() -> None:
    tool = load("cost_errors")
    assert tool.DOCUMENT.read_text(encoding="utf-8") == tool.text()
