"""Several optimizers, sparse gradients and compiled functions under capture."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")

from buddysim.capture import training  # noqa: E402
from buddysim.formats.operator_graph import OperatorGraph, load_operators  # noqa: E402
from tests.capture.torch.test_scripts import apart  # noqa: E402


def captured(output: Path) -> OperatorGraph:
    """Train an embedding with sparse gradients and a layer, each with an optimizer of its own."""
    table, layer = torch.nn.Embedding(1000, 16, sparse=True), torch.nn.Linear(16, 4)
    sparse = torch.optim.SparseAdam(list(table.parameters()))
    dense = torch.optim.Adam(layer.parameters())
    with training(output):
        torch.compile(torch.relu)
        for _ in range(4):
            loss = layer(table(torch.randint(0, 1000, (8, 5))).mean(1)).square().mean()
            sparse.zero_grad()
            dense.zero_grad()
            loss.backward()
            sparse.step()
            dense.step()
    return load_operators(output)


@pytest.mark.slow
def test_the_state_of_all_optimizers_is_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The second optimizer makes its state behind the first one's step, so in iteration 1: the graph is the next one.

    Two averages of each weight (16,000, 64 and 4 elements) and Adam's two counters. Both weights have the same name.
    """
    graph = apart(captured, tmp_path / "two.graph.json")
    assert graph.iteration == 2
    assert graph.bytes_by_role()["optimizer"] == 2 * 4 * (16_000 + 64 + 4) + 2 * 4
    names = {one.name for one in graph.storages if one.role == "weight"}
    assert names == {"weight: weight", "weight: weight #2", "weight: bias"}
    assert "torch.compile: observed iterations run uncompiled" in capfd.readouterr().err
