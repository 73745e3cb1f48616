"""Captured trainings of language models become networks that save the same bytes as PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")

from torch import nn  # noqa: E402

from buddysim.capture import training  # noqa: E402
from buddysim.cli import main  # noqa: E402
from buddysim.training.networks.graph import Network  # noqa: E402
from buddysim.training.networks.torch_saves import saved_bytes  # noqa: E402
from tests.training.networks.saved_by_torch import example, measured  # noqa: E402
from tests.training.networks.test_torch_saves import Language, Recurrent, Translation  # noqa: E402

WORDS, BATCH, TOKENS = 50, 3, 5


def captured(net: nn.Module, folder: Path) -> Path:
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with training(folder / "net.bin", samples=0):
        for _ in range(2):
            optimizer.zero_grad()
            scores = net(example((TOKENS,), BATCH, WORDS))
            nn.functional.cross_entropy(scores.flatten(0, 1), torch.arange(BATCH * TOKENS)).backward()
            optimizer.step()
    return folder / "net.graph.json"


MODELS = {
    "gpt, fused": (lambda: Language(TOKENS, 12, 3, 0.0, fused=True), ("attention", "embedding", "positions", "part")),
    "gpt, written out": (lambda: Language(TOKENS, 12, 3, 0.1, fused=False), ("matmul", "mask", "scale", "dropout")),
    "translation": (lambda: Translation(0.1, norm_first=False), ("copy", "layernorm", "softmax", "relu")),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_transformer(name: str, tmp_path: Path) -> None:
    make, kinds = MODELS[name]
    net = make() if name != "translation" else nn.Sequential(make(), nn.Linear(12, WORDS))
    network = Network.load(captured(net, tmp_path))
    assert set(kinds) <= {layer.kind for layer in network.layers}
    assert network.parameters == sum(parameter.numel() for parameter in net.parameters())
    assert saved_bytes(network, BATCH, "cpu") == measured(net, example((TOKENS,), BATCH, WORDS))[0]


def test_an_lstm_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = Recurrent(2, 0.0, 0)
    path = captured(net, tmp_path)
    network = Network.load(path)
    assert [layer.kind for layer in network.layers] == ["input", "embedding", "copy", "lstm", "lstm", "copy", "fc"]
    assert network.parameters == sum(parameter.numel() for parameter in net.parameters())
    main(["train", str(path), "--batch", "8", "--scheme", "baseline-p,vdnn-all-m,save-on-cpu,activation-checkpointing"])
    assert "net" in capsys.readouterr().out
