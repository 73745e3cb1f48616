"""The commands of the tutorial on Triton, and the numbers that it states."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.docs.test_tutorial import ROOT, walk

PAGE = ROOT / "docs" / "tutorials" / "triton.md"


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("triton") is None,
    reason="needs pip install torch==2.13.0 triton==3.9.0",
)
def test_the_tutorial(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    captured, info, plain, higher, paper, slow = walk(tmp_path, "triton", PAGE)
    assert captured.startswith("4497 tokens")
    assert "not a GPU's: the order of warps" in info
    assert "256 thread blocks" in info
    assert [target_of(shown) for shown in (plain, higher)] == ["1x", "4x"]
    slowdowns = [1 / float(re.findall(r"speedup over ideal +([0-9.]+)x", shown)[0]) for shown in (paper, slow)]
    assert slowdowns[1] > 1.05
    for slowdown, digits in zip(slowdowns, (2, 1), strict=True):
        assert f"{slowdown:.{digits}f}x the" in text


def target_of(shown: str) -> str:
    (line,) = (line for line in shown.splitlines() if line.startswith("decode.keys"))
    return line.split()[3]
