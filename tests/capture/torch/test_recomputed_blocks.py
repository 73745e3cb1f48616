"""A model whose blocks are computed again in the backward pass: its batch, and the paths of its modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")

from torch.utils.checkpoint import checkpoint  # noqa: E402

from buddysim.capture import training  # noqa: E402
from buddysim.formats.operator_graph import OperatorGraph, load_operators  # noqa: E402
from tests.capture.torch.test_scripts import apart  # noqa: E402

BATCH, WORDS = 6, 48


def captured(output: Path) -> OperatorGraph:
    """Train a model with two blocks that take the positions of the words, too; return the graph of an iteration."""

    class Part(torch.nn.Linear):
        def forward(self, x: Any, positions: Any) -> Any:
            return super().forward(x).relu() + positions[:, None]

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.blocks = torch.nn.Embedding(50, 8), torch.nn.ModuleList([Part(8, 8), Part(8, 8)])

        def forward(self, words: Any) -> Any:
            x, positions = self.table(words), torch.arange(words.shape[1]).float()
            for block in self.blocks:
                x = checkpoint(block, x, positions, use_reentrant=False)
            return x

    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with training(output):
        for _ in range(3):
            model(torch.randint(0, 50, (BATCH, WORDS))).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    return load_operators(output)


@pytest.mark.slow
def test_the_batch_and_the_paths_are_those_of_the_forward_pass(tmp_path: Path) -> None:
    """Blocks alone take words first; their own paths have no name of the model's."""
    graph = apart(captured, tmp_path / "model.graph.json")
    assert graph.batch == BATCH
    assert {operator.module for operator in graph.operators if operator.name.endswith("relu.default")} == {
        "blocks.0",
        "blocks.1",
    }
