"""Which module an operator is of."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")
from buddysim.capture.torch.observer import Observer, ObserverSettings  # noqa: E402
from buddysim.capture.torch.spool import Spool  # noqa: E402


def test_behind_a_module_none_is_left(tmp_path: Path) -> None:
    within = []
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    observer = Observer(Spool.for_trace(tmp_path / "x.bin"), ObserverSettings())
    net[1].register_forward_pre_hook(lambda *_: within.append(list(observer._modules)))
    observer.start()
    try:
        net(torch.randn(2, 4))
        assert within == [["Sequential", "1"]]
        assert observer._modules == []
    finally:
        observer.stop()
