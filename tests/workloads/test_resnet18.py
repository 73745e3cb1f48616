"""Contents of a residual network in training agree with those of an archive of real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/usr/share/datasets/fashion-mnist").is_dir(), reason="dataset-fashion-mnist is missing")
def test_contents_are_those_of_the_archive() -> None:
    from tools.compare_resnet18 import agree, compare

    rows = compare()
    assert len(rows) == 10
    for kind, what, reference, simulated in rows:
        assert agree(reference, simulated), (kind, what, reference, simulated)
