"""The commands of the tutorial on a training script, and the numbers that it states."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.docs.test_tutorial import ROOT, lines, text, walk

PAGE = ROOT / "docs" / "tutorials" / "your-script.md"


def test_every_command_is_walked() -> None:
    assert [line for line in text(PAGE).splitlines() if line.startswith("python ")] == lines("script", PAGE)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs pip install torch==2.13.0")
def test_the_tutorial(tmp_path: Path) -> None:
    said = " ".join(PAGE.read_text(encoding="utf-8").split())
    captured, trained, fitted = walk(tmp_path, "script", PAGE)
    assert re.match(r"0 4\.\d+\n1 4\.\d+\n2 4\.\d+\n$", captured)
    trained, fitted = (" ".join(one.split()) for one in (trained, fitted))
    (short,) = re.findall(r"does not fit as is, (\S+) GiB short \(largest: saved activations", trained)
    (slower,) = re.findall(r"activation-checkpointing makes it fit, (\d+) % slower", trained)
    assert f"{short} GiB are missing, mostly for what autograd saves" in said
    assert f"with activation checkpointing, {slower} % slower" in said
    (slower,) = re.findall(r"(\d+) % slower than without a plan on enough memory", fitted)
    (groups,) = re.findall(r"plan of (\d+) groups", fitted)
    assert f"of {groups} groups are recomputed, and the iteration takes {slower} % longer" in said
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"gpt.graph.json", "plan.toml", "plan.png"}
